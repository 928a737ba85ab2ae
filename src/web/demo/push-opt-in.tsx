import { BellRing } from 'lucide-preact'
import { useEffect, useState } from 'preact/hooks'
import { ApiError, type Client } from '../../../client/src/client.ts'
import { Button, useAction } from '../kit/button.tsx'
import { texts } from '../kit/texts.tsx'
import { useMe } from './session.ts'

type PushState = 'insecure' | 'unsupported' | 'declined' | 'off' | 'failed' | 'on'

/** Asks before the browser does, and explains why push is not available. */
export function PushOptIn() {
  const { client } = useMe()
  const text = texts.demo.push
  const [state, setState] = useState<PushState>()
  useEffect(() => void findState(client).then(setState, () => setState('off')), [client])
  const subscribing = useAction(async () => {
    try {
      await navigator.serviceWorker.register('/service-worker.js')
      // A worker must be active before it can subscribe.
      await client.pushTokens.subscribe(await navigator.serviceWorker.ready)
      setState('on')
    } catch (error) {
      if (error instanceof ApiError) throw error
      // The browser does not say whether the user declined or the push service failed.
      setState(isDeclined() ? 'declined' : 'failed')
    }
  })
  const ending = useAction(async () => {
    const registration = await navigator.serviceWorker.ready
    await client.pushTokens.unsubscribe(registration, await findTokenId(client))
    setState('off')
  })
  if (state === undefined) return null
  const action = state === 'on' ? ending : subscribing
  return (
    <div class="notice push">
      <BellRing />
      <div class="stack tight">
        <p>{text[state]}</p>
        {(state === 'on' || state === 'off' || state === 'failed') && (
          <Button isBusy={action.isBusy} onClick={() => action.run()}>
            {state === 'on' ? text.end : text.begin}
          </Button>
        )}
      </div>
    </div>
  )
}

async function findState(client: Client): Promise<PushState> {
  if (!globalThis.isSecureContext) return 'insecure'
  if (!('serviceWorker' in navigator && 'PushManager' in globalThis)) return 'unsupported'
  if (isDeclined()) return 'declined'
  return (await findTokenId(client)) === undefined ? 'off' : 'on'
}

const isDeclined = () => Notification.permission === 'denied'

/** A browser has a single subscription for all its users: the service knows to whom it belongs. */
async function findTokenId(client: Client): Promise<string | undefined> {
  const registration = await navigator.serviceWorker.getRegistration()
  const subscription = await registration?.pushManager.getSubscription()
  if (!subscription) return undefined
  const { data } = await client.pushTokens.list()
  return data.find(({ token }) => token === JSON.stringify(subscription))?.id
}
