import type { Answer, Webhook } from '../../../../client/src/contract.ts'
import { useAction } from '../../ui/action.ts'
import { confirmAction } from '../../ui/dialog.tsx'
import { navigate } from '../../ui/router.ts'
import { toast } from '../../ui/toast.tsx'
import { request } from '../session.ts'
import { editWebhook, renewSecret } from './webhook-form.tsx'

type ActionsProps = {
  webhook: Webhook
  show: (webhook: Webhook) => void
  showResult: (result: Answer<'POST /v1/admin/webhooks/{id}/test'> | undefined) => void
}

export function WebhookActions({ webhook, show, showResult }: ActionsProps) {
  const { id, enabled } = webhook
  const params = { id }
  const test = useAction(async () => {
    showResult(undefined)
    showResult(await request('POST /v1/admin/webhooks/{id}/test', { params }))
  })
  const toggle = useAction(async () => {
    if (enabled && !(await maySwitchOff(webhook))) return
    const body = { enabled: !enabled }
    show(await request('PATCH /v1/admin/webhooks/{id}', { params, body }))
  })
  const renew = useAction(() => renewWhenAsked(id))
  const remove = useAction(() => removeWhenAsked(webhook))
  async function edit() {
    const changed = await editWebhook(webhook)
    if (changed) show(changed)
  }
  return (
    <div class="row wrap">
      <button type="button" class="button primary" onClick={test.run}>
        {test.isBusy ? 'Sending a test…' : 'Send a test'}
      </button>
      <button type="button" class="button" onClick={edit}>
        Edit
      </button>
      <button type="button" class="button" onClick={toggle.run}>
        {enabled ? 'Switch off' : 'Switch on'}
      </button>
      <button type="button" class="button" onClick={renew.run}>
        Renew the secret
      </button>
      <button type="button" class="button danger" onClick={remove.run}>
        Remove
      </button>
    </div>
  )
}

const maySwitchOff = ({ url }: Webhook) =>
  confirmAction({
    title: 'Switch the webhook off?',
    text: `${new URL(url).host} gets no more events. What happens until it is on again is not delivered later.`,
    action: 'Switch off',
    isDangerous: true,
  })

async function renewWhenAsked(id: string) {
  const isMeant = await confirmAction({
    title: 'Renew the secret?',
    text: 'A new secret is made and shown once. For 24 hours deliveries are signed with both, so that the receiver can be changed meanwhile.',
    action: 'Renew the secret',
  })
  if (isMeant) await renewSecret(id)
}

async function removeWhenAsked({ id, url }: Webhook) {
  const isMeant = await confirmAction({
    title: 'Remove the webhook?',
    text: `${new URL(url).host} gets no more events; waiting deliveries are dropped.`,
    action: 'Remove',
    isDangerous: true,
  })
  if (!isMeant) return
  await request('DELETE /v1/admin/webhooks/{id}', { params: { id } })
  toast('The webhook was removed.')
  navigate('/console/system/webhooks', 'replace')
}
