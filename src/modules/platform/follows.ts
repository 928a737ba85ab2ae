import type { Core, ResolveUser } from '../../core.ts'
import { chunksOf } from '../../lib/chunks.ts'
import { AppError, invalidField } from '../../lib/errors.ts'
import type { Listing, ListRange } from '../../lib/list-range.ts'
import type { CallParts } from './calls.ts'
import type { FollowRow } from './store.ts'

export type Follows = ReturnType<typeof createFollows>

/** Followers per write of an import, so that it blocks the event loop for only a few milliseconds. */
const importedPerWrite = 100

type Parts = Omit<CallParts, 'onChanged'> & { resolveUser: ResolveUser }

export function createFollows({ write, clock }: Core, parts: Parts) {
  const { store, notify, resolveUser, findPresent } = parts

  function presentUser(reference: string): string {
    const id = findPresent(reference)
    if (id === undefined) throw new AppError('not_found')
    return id
  }

  /** Also returns deleted users, so that they can be unfollowed.
   *  @throws not_found (unknown user) */
  function knownUser(reference: string): string {
    const id = resolveUser(reference)
    if (id === undefined || !store.findUser(id)) throw new AppError('not_found')
    return id
  }

  /** @throws not_found · not_a_host (only hosts and admins can be followed) */
  function presentHost(reference: string): string {
    const id = presentUser(reference)
    if (!store.isHost(id)) throw new AppError('not_a_host')
    return id
  }

  function importOne(hostId: string, reference: string): 'added' | 'already' | 'unknown' {
    const id = findPresent(reference)
    if (id === undefined || id === hostId) return 'unknown'
    return store.insertFollow(hostId, id, clock.now()) ? 'added' : 'already'
  }

  // The dedupe key suppresses a second notification when a follower leaves and comes back.
  function notifyHost(hostId: string, followerId: string) {
    const follower_name = store.findUser(followerId)?.displayName ?? ''
    const data = { follower_id: followerId, follower_name }
    notify(hostId, followerId, { type: 'follow_new', data, dedupeKey: `follow_new:${followerId}` })
  }

  return {
    /** Adds a follower and notifies the host. Idempotent, even if the host has since lost that role.
     *  @throws not_found · validation_error (oneself) · not_a_host */
    follow: (hostText: string, followerText: string): Promise<void> =>
      write(() => {
        const [hostId, followerId] = [presentUser(hostText), presentUser(followerText)]
        if (hostId === followerId) throw invalidField('follower_id', 'oneself')
        if (!store.insertFollow(hostId, followerId, clock.now())) return
        if (!store.isHost(hostId)) throw new AppError('not_a_host')
        notifyHost(hostId, followerId)
      }),

    /** Idempotent.
     *  @throws not_found */
    async unfollow(hostText: string, followerText: string): Promise<void> {
      const [hostId, followerId] = [knownUser(hostText), knownUser(followerText)]
      await write(() => store.deleteFollow(hostId, followerId))
    },

    /** The followers of a host, ordered by id.
     *  @throws not_found */
    list: (hostText: string, range: ListRange): Listing<FollowRow> =>
      store.listFollows(knownUser(hostText), range),

    /** @returns the numbers of new and existing followers, and the ids of nobody
     *  @throws not_found (the host) · not_a_host */
    async importFollowers(hostText: string, followerIds: readonly string[]) {
      const hostId = presentHost(hostText)
      const outcomes: Array<ReturnType<typeof importOne>> = []
      for (const part of chunksOf(followerIds, importedPerWrite)) {
        const imported = await write(() => {
          presentHost(hostId)
          return part.map((id) => importOne(hostId, id))
        })
        outcomes.push(...imported)
      }
      const count = (wanted: string) => outcomes.filter((outcome) => outcome === wanted).length
      const unknown = followerIds.filter((_, n) => outcomes[n] === 'unknown')
      return { added: count('added'), already: count('already'), unknown }
    },
  }
}
