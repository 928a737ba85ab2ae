import { lazy } from '../lib/lazy.ts'
import type { Role } from '../lib/vocabulary.ts'
import type { Frame } from './frames.ts'

export const closeCodes = {
  goingAway: 1001,
  malformedFrames: 4400,
  tokenExpired: 4401,
  accessRevoked: 4403,
  tooManySockets: 4409,
  tooManyFrames: 4429,
} as const
export type CloseCode = (typeof closeCodes)[keyof typeof closeCodes]

export type Peer = {
  readonly userId: string
  readonly sessionId: string
  readonly role: Role
  readonly mayAdminister: boolean
  /** False for frames of a group that the client did not subscribe to, and for messages (`id`) that its replay sends. */
  wants(type: string, id: string | undefined): boolean
  /** @returns false when the socket could not take the serialised frame */
  send(text: string): boolean
  isBehind(): boolean
  isExpired(now: number): boolean
  drop(): void
  close(code: CloseCode): void
}

type SendOptions = {
  except?: Peer | undefined
  /** The message id, for frames that a replay may send too. Ids rise in commit order. */
  id?: string
  variant?: { frame: Frame; isFor: (peer: Peer) => boolean } | undefined
}

export type Hub = ReturnType<typeof createHub>

const maxPeersPerUser = 50
/** For all peers together; a single peer is limited to 1 MiB. */
const maxUnsentBytes = 32 * 1_024 * 1_024
const stuckMilliseconds = 10_000

export function createHub() {
  const peersByUser = new Map<string, Set<Peer>>()
  const admins = new Set<Peer>()
  // Unsent bytes beyond the kernel's buffer, and the time since which the peer has read nothing.
  const unsent = new Map<Peer, { bytes: number; since: number }>()
  let unsentBytes = 0
  let count = 0
  let dropped = 0

  function add(peer: Peer) {
    const peers = peersByUser.getOrInsertComputed(peer.userId, () => new Set())
    peers.add(peer)
    if (peer.mayAdminister) admins.add(peer)
    count++
    const [oldest] = peers
    if (oldest && peers.size > maxPeersPerUser) end(oldest, closeCodes.tooManySockets)
  }

  function remove(peer: Peer) {
    setUnsent(peer, 0, 0)
    const peers = peersByUser.get(peer.userId)
    if (!peers?.delete(peer)) return
    admins.delete(peer)
    count--
    if (peers.size === 0) peersByUser.delete(peer.userId)
  }

  function end(peer: Peer, code: CloseCode) {
    remove(peer)
    peer.close(code)
  }

  function setUnsent(peer: Peer, bytes: number, since: number) {
    unsentBytes += bytes - (unsent.get(peer)?.bytes ?? 0)
    if (bytes > 0) unsent.set(peer, { bytes, since })
    else unsent.delete(peer)
  }

  function drop(peer: Peer) {
    remove(peer)
    peer.drop()
  }

  const peersOf = (userId: string): Iterable<Peer> => peersByUser.get(userId) ?? []

  function closeUser(userId: string, mayStay = (_: Peer) => false) {
    for (const peer of [...peersOf(userId)]) {
      if (!mayStay(peer)) end(peer, closeCodes.accessRevoked)
    }
  }

  function closeEach(code: CloseCode, isMeant = (_: Peer) => true) {
    for (const peers of peersByUser.values()) {
      for (const peer of peers) if (isMeant(peer)) end(peer, code)
    }
  }

  function createDelivery(frame: Frame, { except, id, variant }: SendOptions, isVolatile = false) {
    const textOf = lazy(() => JSON.stringify(frame))
    const variantTextOf = variant && lazy(() => JSON.stringify(variant.frame))
    const sendTo = (peer: Peer) => {
      const text = variantTextOf && variant.isFor(peer) ? variantTextOf() : textOf()
      if ((isVolatile && peer.isBehind()) || !peer.send(text)) dropped++
    }
    return (peers: Iterable<Peer>) => {
      for (const peer of peers) if (peer !== except && peer.wants(frame.type, id)) sendTo(peer)
    }
  }

  return {
    add,
    remove,
    send(userIds: readonly string[], frame: Frame, options: SendOptions = {}) {
      const deliver = createDelivery(frame, options)
      for (const userId of userIds) deliver(peersOf(userId))
    },
    /** For frames that matter only now: skips peers that read slowly. */
    sendVolatile: (userId: string, frame: Frame) =>
      createDelivery(frame, {}, true)(peersOf(userId)),
    sendToAdmins: (frame: Frame) => createDelivery(frame, {})(admins),
    sendVolatileToAdmins: (frame: Frame, exceptUserId: string) =>
      createDelivery(frame, {}, true)(admins.values().filter((it) => it.userId !== exceptUserId)),
    isOnline: (userId: string): boolean => peersByUser.has(userId),
    /** Records a peer's unsent bytes. Above the bound for all peers, those with the most unsent bytes are dropped.
     *  @param hasRead whether the peer has just read some of them */
    noteUnsent(peer: Peer, bytes: number, { now, hasRead }: { now: number; hasRead: boolean }) {
      setUnsent(peer, bytes, (hasRead ? undefined : unsent.get(peer)?.since) ?? now)
      while (unsentBytes > maxUnsentBytes) {
        const [slowest] = [...unsent].reduce((a, b) => (b[1].bytes > a[1].bytes ? b : a))
        drop(slowest)
      }
    },
    dropStuck(now: number) {
      for (const [peer, { since }] of [...unsent]) if (now - since >= stuckMilliseconds) drop(peer)
    },
    closeSession: (userId: string, sessionId: string) =>
      closeUser(userId, (peer) => peer.sessionId !== sessionId),
    closeUser,
    closeExpired: (now: number) =>
      closeEach(closeCodes.tokenExpired, (peer) => peer.isExpired(now)),
    closeAll: (code: CloseCode) => closeEach(code),
    stats: () => ({ sockets: count, users: peersByUser.size, dropped, unsentBytes }),
  }
}
