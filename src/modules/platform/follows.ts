import type { Write } from '../../db/writer.ts'
import type { Clock } from '../../lib/clock.ts'
import { AppError, invalidField } from '../../lib/errors.ts'
import { parseId } from '../../lib/ids.ts'
import type { Notify } from './calls.ts'
import type { FollowStore } from './follow-store.ts'

export type Follows = ReturnType<typeof createFollows>

/** What became of a bulk import: how many follow now, did already, or are nobody. */
export type ImportResult = { added: number; already: number; unknown: number }

/** Rows in one transaction: a few milliseconds of the loop. */
const part = 100

/** Who follows whom, as the platform tells it (decisions 9). */
export function createFollows({
  store,
  write,
  clock,
  notify,
}: {
  store: FollowStore
  write: Write
  clock: Clock
  notify: Notify
}) {
  const isPresent = (id: string | undefined): id is string =>
    id !== undefined && store.findUser(id)?.deletedAt === null

  /** @throws not_found */
  function present(idText: string): string {
    const id = parseId(idText)
    if (!isPresent(id)) throw new AppError('not_found')
    return id
  }

  /** @throws not_found: never heard of; somebody who is gone can still be unfollowed */
  function known(idText: string): string {
    const id = parseId(idText)
    if (id === undefined || !store.findUser(id)) throw new AppError('not_found')
    return id
  }

  function add(hostId: string, idText: string, result: ImportResult) {
    const followerId = parseId(idText)
    if (!isPresent(followerId) || followerId === hostId) result.unknown++
    else if (store.insert(hostId, followerId, clock.now())) result.added++
    else result.already++
  }

  // Who leaves and comes back is the same event.
  function tellHost(hostId: string, followerId: string) {
    const follower_name = store.findUser(followerId)?.displayName ?? ''
    const data = { follower_id: followerId, follower_name }
    notify(hostId, { type: 'follow_new', data, dedupeKey: `follow_new:${followerId}` })
  }

  return {
    /** Tells the host of a new follower; again changes nothing.
     *  @throws not_found · validation_error (oneself) */
    async follow(hostText: string, followerText: string): Promise<void> {
      await write(() => {
        const [hostId, followerId] = [present(hostText), present(followerText)]
        if (hostId === followerId) throw invalidField('follower_id', 'oneself')
        const isNew = store.insert(hostId, followerId, clock.now())
        if (isNew) tellHost(hostId, followerId)
      })
    },

    /** Again changes nothing.
     *  @throws not_found */
    async unfollow(hostText: string, followerText: string): Promise<void> {
      const [hostId, followerId] = [known(hostText), known(followerText)]
      await write(() => store.delete(hostId, followerId))
    },

    /** Adds many followers, in small parts; again adds nobody.
     *  @throws not_found (the host) */
    async importFollowers(hostText: string, followerIds: readonly string[]): Promise<ImportResult> {
      const hostId = present(hostText)
      const result = { added: 0, already: 0, unknown: 0 }
      for (let start = 0; start < followerIds.length; start += part) {
        const ids = followerIds.slice(start, start + part)
        await write(() => {
          present(hostId)
          for (const id of ids) add(hostId, id, result)
        })
      }
      return result
    },

    countFollowers: store.count,
    listFollowers: store.listAfter,
    /** The user is gone: inside the `write` that removes them. */
    forget: store.deleteOfFollower,
  }
}
