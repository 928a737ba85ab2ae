import type { Write } from '../../db/writer.ts'
import { AppError, type FieldProblems, problem } from '../../lib/errors.ts'
import { type NotificationType, notificationTypes } from '../../lib/vocabulary.ts'
import type { PreferenceStore } from './preference-store.ts'

/** The ways in which a user hears of a type. */
export type Ways = { inApp: boolean; push: boolean; email: boolean }
export type PreferenceChanges = { [T in NotificationType]?: Partial<Ways> | undefined }

export type Preferences = ReturnType<typeof createPreferences>

const alwaysInApp: readonly NotificationType[] = ['call_incoming', 'payout_failed', 'support_reply']

const usual = (type: NotificationType): Ways => ({
  inApp: true,
  push: true,
  email: type === 'support_reply',
})

/** What each user wants to hear of, and how (decisions 8). */
export function createPreferences({ store, write }: { store: PreferenceStore; write: Write }) {
  const waysOf = (userId: string, type: NotificationType): Ways =>
    store.find(userId, type) ?? usual(type)

  const all = (userId: string) =>
    notificationTypes.map((type) => [type, waysOf(userId, type)] as const)

  return {
    waysOf,
    list: all,
    /** Changes what is named and leaves the rest.
     *  @throws validation_error for a type that cannot be switched off in the app */
    async update(userId: string, changes: PreferenceChanges) {
      const refused = alwaysInApp.filter((type) => changes[type]?.inApp === false)
      if (refused.length > 0) {
        const details: FieldProblems = {}
        for (const type of refused) details[type] = problem('always_on')
        throw new AppError('validation_error', { details })
      }
      return write(() => {
        for (const type of notificationTypes) {
          const wanted = changes[type]
          if (wanted) store.upsert({ ...waysOf(userId, type), ...wanted, userId, type })
        }
        return all(userId)
      })
    },
    forget: store.deleteOfUser,
  }
}
