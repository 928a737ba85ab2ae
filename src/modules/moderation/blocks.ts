import type { Core } from '../../core.ts'
import { AppError, invalidField } from '../../lib/errors.ts'
import { getById, parseId } from '../../lib/ids.ts'
import { createBlockStore } from './block-store.ts'

export type Blocks = ReturnType<typeof createBlocks>

/** @param onChanged called inside the `write` after which two users may talk, or no longer */
export function createBlocks(core: Core, onChanged: (userId: string, otherId: string) => void) {
  const { write, newId, clock } = core
  const store = createBlockStore(core.orm)
  const presentId = (id: string) => (store.isPresent(id) ? id : undefined)

  return {
    mayTalk: (userId: string, otherId: string): boolean => !store.areBlocked(userId, otherId),
    listBlockedEitherWay: store.listBlockedEitherWay,

    /** Blocks a user. Idempotent.
     *  @throws validation_error (oneself) · not_found (unknown or deleted user) */
    block: (userId: string, otherIdText: string): Promise<void> =>
      write(() => {
        if (parseId(otherIdText) === userId) throw invalidField('user_id', 'oneself')
        const otherId = getById(otherIdText, presentId)
        if (store.isBlocking(userId, otherId)) return
        const mightTalk = !store.areBlocked(userId, otherId)
        store.insert(userId, otherId, { id: newId(), blockedAt: clock.now() })
        if (mightTalk) onChanged(userId, otherId)
      }),

    /** Removes a block, if there is one.
     *  @throws not_found (invalid id) */
    unblock: (userId: string, otherIdText: string): Promise<void> =>
      write(() => {
        const otherId = parseId(otherIdText)
        if (otherId === undefined) throw new AppError('not_found')
        if (!store.isBlocking(userId, otherId)) return
        if (store.isBlocking(otherId, userId)) store.updateUnblocked(userId, otherId)
        else {
          store.delete(userId, otherId)
          onChanged(userId, otherId)
        }
      }),

    list: store.list,
    each: store.each,
    isPresent: store.isPresent,

    erase(userId: string, limit: number) {
      const some = store.listBlockedEitherWay(userId, limit)
      for (const otherId of some) store.delete(userId, otherId)
      return some.at(-1)
    },
  }
}
