import type { Api } from './api.ts'
import type { Body, PushToken } from './contract.ts'

/** The part of a ServiceWorkerRegistration that is used. */
type PushRegistration = {
  pushManager: {
    getSubscription(): Promise<Subscription | null>
    subscribe(options: {
      userVisibleOnly: boolean
      applicationServerKey: string
    }): Promise<Subscription>
  }
}
type Subscription = { unsubscribe(): Promise<boolean>; toJSON(): unknown }

/** Push tokens of devices, and a browser's subscription to Web Push. */
export function createPush({ request, listOf }: Pick<Api, 'request' | 'listOf'>) {
  const register = (body: Body<'POST /v1/notifications/push-tokens'>) =>
    request('POST /v1/notifications/push-tokens', { body })
  const remove = (id: string) =>
    request('DELETE /v1/notifications/push-tokens/{id}', { params: { id } })

  return {
    ...listOf('GET /v1/notifications/push-tokens'),
    /** Registers the token that FCM gave to a device; again after each login. */
    register,
    remove,

    /** Subscribes this browser. Ask the person first: it asks for permission.
     *  @param registration of a service worker such as `hostline-client/service-worker.js`
     *  @throws what the browser throws when the person declines */
    async subscribe({ pushManager }: PushRegistration): Promise<PushToken> {
      const { public_key } = await request('GET /v1/notifications/web-push-key')
      const options = { userVisibleOnly: true, applicationServerKey: public_key }
      const subscription =
        (await pushManager.getSubscription()) ?? (await pushManager.subscribe(options))
      return register({ platform: 'web', token: JSON.stringify(subscription) })
    },

    /** Ends this browser's subscription; the service forgets the token when it next pushes. */
    async unsubscribe({ pushManager }: PushRegistration, tokenId?: string): Promise<void> {
      if (tokenId !== undefined) await remove(tokenId)
      await (await pushManager.getSubscription())?.unsubscribe()
    },
  }
}
