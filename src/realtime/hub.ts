import { type CloseCode, closeCodes } from './close-codes.ts'

/** A live socket of a user. */
export type Peer = {
  readonly userId: string
  readonly sessionId: string
  readonly isAdmin: boolean
  /** Whether a frame is meant for this socket: some go to those alone who asked for them. */
  wants(frame: Frame): boolean
  /** Hands over a serialised frame; false when the socket could not take it. */
  send(text: string): boolean
  /** True while frames queue up because the peer reads slowly. */
  isBehind(): boolean
  close(code: CloseCode): void
}

export type Frame = { type: string; [field: string]: unknown }

export type Hub = ReturnType<typeof createHub>

const maxPeersPerUser = 50

/** The live sockets of each user. Nothing is only here: what a peer misses it reads again from the database. */
export function createHub() {
  const peersByUser = new Map<string, Set<Peer>>()
  const admins = new Set<Peer>()
  let count = 0
  let dropped = 0

  function add(peer: Peer) {
    const peers = peersByUser.get(peer.userId) ?? new Set()
    peersByUser.set(peer.userId, peers)
    peers.add(peer)
    if (peer.isAdmin) admins.add(peer)
    count++
    const [oldest] = peers
    if (oldest && peers.size > maxPeersPerUser) end(oldest, closeCodes.tooManySockets)
  }

  function remove(peer: Peer) {
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

  function peersOf(userId: string): Iterable<Peer> {
    return peersByUser.get(userId) ?? []
  }

  // Serialised once, for the first who wants it.
  function deliver(peers: Iterable<Peer>, frame: Frame, accepts: (peer: Peer) => boolean) {
    let text: string | undefined
    for (const peer of peers) {
      if (!peer.wants(frame)) continue
      text ??= JSON.stringify(frame)
      if (!accepts(peer) || !peer.send(text)) dropped++
    }
  }

  function* peersOfAll(userIds: readonly string[]): Iterable<Peer> {
    for (const userId of userIds) yield* peersOf(userId)
  }

  return {
    add,
    remove,
    /** Sends a frame to every socket of each user, `except` the one it came from. */
    send(userIds: readonly string[], frame: Frame, except?: Peer) {
      const peers = peersOfAll(userIds)
      deliver(except ? [...peers].filter((peer) => peer !== except) : peers, frame, () => true)
    },
    /** Sends a frame that matters only now: whoever reads slowly does not get it. */
    sendPassing: (userIds: readonly string[], frame: Frame) =>
      deliver(peersOfAll(userIds), frame, (peer) => !peer.isBehind()),
    /** Sends a frame to every socket of every admin. */
    sendToAdmins: (frame: Frame) => deliver(admins, frame, () => true),
    /** Whether a user has a socket open. */
    isOnline: (userId: string): boolean => peersByUser.has(userId),
    /** Closes the sockets of one session. */
    closeSession(userId: string, sessionId: string) {
      for (const peer of [...peersOf(userId)]) {
        if (peer.sessionId === sessionId) end(peer, closeCodes.accessRevoked)
      }
    },
    /** Closes every socket of a user. */
    closeUser(userId: string) {
      for (const peer of [...peersOf(userId)]) end(peer, closeCodes.accessRevoked)
    },
    /** Closes every socket there is. */
    closeAll(code: CloseCode) {
      for (const peers of [...peersByUser.values()]) {
        for (const peer of [...peers]) end(peer, code)
      }
    },
    stats: () => ({ sockets: count, users: peersByUser.size, dropped }),
  }
}
