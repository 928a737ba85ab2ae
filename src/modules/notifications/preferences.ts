import type { Core } from '../../core.ts'
import { AppError, invalidField, problem, throwProblems } from '../../lib/errors.ts'
import { isCustomType, type PreferenceType, preferenceTypes } from '../../lib/vocabulary.ts'
import type { NotificationStore } from './store.ts'

export type Channels = { inApp: boolean; push: boolean; email: boolean }
export type PreferenceChanges = [
  PreferenceType,
  { [C in keyof Channels]?: boolean | null | undefined },
][]

export type Preferences = ReturnType<typeof createPreferences>

const maxCustomTypes = 100
export const alwaysInApp: readonly PreferenceType[] = [
  'call_incoming',
  'payout_failed',
  'support_reply',
]

export function createPreferences({ write }: Core, store: NotificationStore) {
  const channelsOf = (userId: string, type: PreferenceType): Channels =>
    store.findPreference(userId, type) ?? {
      inApp: true,
      push: true,
      email: type === 'support_reply' || type === 'chat_message',
    }

  /** Lists a type of the platform once the user has changed it. */
  const list = (userId: string) =>
    [...preferenceTypes, ...store.listCustomTypes(userId)].map(
      (type) => [type, channelsOf(userId, type)] as const,
    )

  /** A request may have been running while its user was deleted. */
  function mustBePresent(userId: string): void {
    if (!store.findPerson(userId)) throw new AppError('session_ended')
  }

  return {
    channelsOf,
    list,
    mustBePresent,
    async update(userId: string, changes: PreferenceChanges) {
      const refused = changes.filter(
        ([type, { inApp }]) => inApp === false && alwaysInApp.includes(type),
      )
      const problems = refused.map(([type]) => [`${type}.in_app`, problem('always_on')] as const)
      throwProblems(Object.fromEntries(problems))
      return write(() => {
        mustBePresent(userId)
        for (const [type, change] of changes) {
          const { inApp, push, email } = channelsOf(userId, type)
          store.upsertPreference({
            userId,
            type,
            inApp: change.inApp ?? inApp,
            push: change.push ?? push,
            email: change.email ?? email,
          })
        }
        if (store.listCustomTypes(userId).length > maxCustomTypes)
          throw invalidField(
            changes.find(([type]) => isCustomType(type))?.[0] ?? '',
            'too_many_types',
            maxCustomTypes,
          )
        return list(userId)
      })
    },
  }
}
