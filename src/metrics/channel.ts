import { Counter, type Registry } from 'prom-client'
import { closeCodes } from '../realtime/close-codes.ts'
import { addGauges, addTotal } from './gauges.ts'

export type HubStats = { sockets: number; users: number; dropped: number }

// Clients may close with any of four thousand: only those of the protocol and our own are told apart.
const firstCode = 1000
const lastCode = 1015
const ownCodes = new Set<number>(Object.values(closeCodes))

/** Counts frames and the ends of sockets. */
export function countChannel(registry: Registry) {
  const registers = [registry]
  const received = new Counter({
    name: 'hostline_frames_received_total',
    help: 'Frames of clients by type; malformed: not understood, refused: over the limit.',
    labelNames: ['type'],
    registers,
  })
  const sent = new Counter({
    name: 'hostline_frames_sent_total',
    help: 'Frames handed to sockets.',
    registers,
  })
  const closed = new Counter({
    name: 'hostline_sockets_closed_total',
    help: 'Closed sockets by close code.',
    labelNames: ['code'],
    registers,
  })

  return {
    received: (type: string) => received.inc({ type }),
    sent: () => sent.inc(),
    closed: (code: number) => closed.inc({ code: isKnown(code) ? code : 'other' }),
  }
}

function isKnown(code: number) {
  return (code >= firstCode && code <= lastCode) || ownCodes.has(code)
}

/** Tells of the sockets there are. */
export function readHub(registry: Registry, stats: () => HubStats) {
  addGauges(
    registry,
    { hostline_sockets: 'Open sockets.', hostline_socket_users: 'Users with an open socket.' },
    () => {
      const { sockets, users } = stats()
      return { hostline_sockets: sockets, hostline_socket_users: users }
    },
  )
  addTotal(
    registry,
    'hostline_frames_dropped_total',
    'Frames that a slow reader did not get.',
    () => stats().dropped,
  )
}
