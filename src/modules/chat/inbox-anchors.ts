import { LRUCache } from 'lru-cache'
import type { InboxPosition } from './store.ts'

type Anchor = { offset: number; position: InboxPosition }

const users = 1_000
const anchorsPerUser = 32

/** Places in conversation lists that somebody paged past, so that the next page starts where this one ended instead of
 *  counting from the top. A list that changes is forgotten. */
export function createInboxAnchors() {
  const byUser = new LRUCache<string, Anchor[]>({ max: users })

  return {
    /** The nearest known place at or before `offset`. */
    find(userId: string, offset: number): Anchor | undefined {
      let nearest: Anchor | undefined
      for (const anchor of byUser.get(userId) ?? []) {
        if (anchor.offset <= offset && anchor.offset > (nearest?.offset ?? 0)) nearest = anchor
      }
      return nearest
    },
    /** Notes that `offset` rows end with `position`. */
    remember(userId: string, offset: number, { lastActivityAt, conversationId }: InboxPosition) {
      const known = byUser.get(userId) ?? []
      const others = known.filter((anchor) => anchor.offset !== offset)
      const position = { lastActivityAt, conversationId }
      byUser.set(userId, [...others.slice(1 - anchorsPerUser), { offset, position }])
    },
    forget(userId: string) {
      byUser.delete(userId)
    },
  }
}
