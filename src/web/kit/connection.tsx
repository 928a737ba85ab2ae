import { signal } from '@preact/signals'
import type { ChannelStatus, Client } from '../../../client/src/client.ts'
import { texts } from './texts.tsx'

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
  const words = texts.kit
  const text =
    status === 'open' ? words.live : status === 'connecting' ? words.connecting : words.offlineShort
  return (
    <span class="row small soft" role="status">
      <span class={`dot ${tones[status]}`} />
      {text}
    </span>
  )
}
