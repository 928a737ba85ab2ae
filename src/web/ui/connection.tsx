import { signal } from '@preact/signals'
import type { ChannelStatus, Client } from '../../../client/src/client.ts'
import { uiTexts } from './texts.ts'

/** The state of a client's channel as a signal. */
export function watchStatus(client: Pick<Client, 'on'>) {
  const status = signal<ChannelStatus>('closed')
  client.on('status', (event) => {
    status.value = event.status
  })
  return status
}

const tones = { open: 'good', connecting: 'warning', waiting: 'danger', closed: 'danger' } as const

export function ConnectionState({ status }: { status: ChannelStatus }) {
  const texts = uiTexts.value
  const text =
    status === 'open' ? texts.live : status === 'connecting' ? texts.connecting : texts.offlineShort
  return (
    <span class="row small soft" role="status">
      <span class={`dot ${tones[status]}`} />
      {text}
    </span>
  )
}
