import { signal } from '@preact/signals'
import type { ChannelStatus, Client } from '../../../client/src/client.ts'
import { words } from './words.ts'

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
  const say = words.value
  const text =
    status === 'open' ? say.live : status === 'connecting' ? say.connecting : say.offlineShort
  return (
    <span class="row small soft" role="status">
      <span class={`dot ${tones[status]}`} />
      {text}
    </span>
  )
}
