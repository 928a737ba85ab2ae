import { LRUCache } from 'lru-cache'
import type { InboxPosition } from './inbox-store.ts'

/** The first `offset` rows of a list end with `position`. */
export type Anchor = { offset: number; position: InboxPosition }
/** `moves`: the conversations that changed their place since the anchors were right, with the activity they had then. */
type Known = { anchors: Anchor[]; moves: Map<string, number | undefined> }

const users = 1_000
const anchorsPerUser = 32
const movesPerUser = 200
/** Counting this far costs less than knowing better. */
const nearRows = 100

/** When a conversation was last active; undefined when the user has no such conversation. */
type ActivityOf = (userId: string, conversationId: string) => number | undefined

/** Places deep in conversation lists that somebody looked at, so that a page starts from there instead of being counted
 *  from the top. What moves within a list shifts its anchors when they are needed next: by what is in the database then,
 *  so that a move that was rolled back is none. */
export function createInboxAnchors(activityOf: ActivityOf) {
  const byUser = new LRUCache<string, Known>({ max: users })

  function settled(userId: string): Known | undefined {
    const known = byUser.get(userId)
    if (!known || known.moves.size === 0) return known
    for (const [conversationId, before] of known.moves) {
      const now = activityOf(userId, conversationId)
      for (const anchor of known.anchors) {
        anchor.offset += Number(isWithin(anchor, now, conversationId))
        anchor.offset -= Number(isWithin(anchor, before, conversationId))
      }
    }
    known.moves.clear()
    return known
  }

  return {
    /** The known place that is nearest to `offset`, on either side; undefined when the start of the list is nearer. */
    find(userId: string, offset: number): Anchor | undefined {
      if (offset < nearRows) return undefined
      const distance = (anchor: Anchor) => Math.abs(anchor.offset - offset)
      let nearest: Anchor | undefined
      for (const anchor of settled(userId)?.anchors ?? []) {
        if (distance(anchor) < (nearest ? distance(nearest) : offset)) nearest = anchor
      }
      return nearest
    },
    /** Notes that the first `offset` rows end with `position`. */
    remember(userId: string, offset: number, { lastActivityAt, conversationId }: InboxPosition) {
      if (offset < nearRows) return
      const { anchors, moves } = settled(userId) ?? { anchors: [], moves: new Map() }
      const others = anchors.filter((anchor) => anchor.offset !== offset)
      const position = { lastActivityAt, conversationId }
      byUser.set(userId, {
        anchors: [...others.slice(1 - anchorsPerUser), { offset, position }],
        moves,
      })
    },
    /** To be told before a conversation changes its place in the user's list, or gets one. */
    beforeMove(userId: string, conversationId: string) {
      const moves = byUser.peek(userId)?.moves
      if (!moves || moves.has(conversationId)) return
      if (moves.size === movesPerUser) byUser.delete(userId)
      else moves.set(conversationId, activityOf(userId, conversationId))
    },
  }
}

function isWithin({ position }: Anchor, lastActivityAt: number | undefined, id: string) {
  if (lastActivityAt === undefined) return false
  if (lastActivityAt !== position.lastActivityAt) return lastActivityAt > position.lastActivityAt
  return id >= position.conversationId
}
