import type { Core } from '../../core.ts'
import { AppError, invalidField, problem, throwProblems } from '../../lib/errors.ts'
import { isCustomType, type PreferenceType, preferenceTypes } from '../../lib/vocabulary.ts'
import { changesOf, preferencesView } from './model.ts'
import type { NotificationParts } from './notifications.ts'
import type { NotificationStore } from './store.ts'

export type Channels = { inApp: boolean; push: boolean; email: boolean }
export type PreferenceChanges = [
  PreferenceType,
  { [C in keyof Channels]?: boolean | null | undefined },
][]

export type Preferences = ReturnType<typeof createPreferences>

const maxCustomTypes = 100
const alwaysInApp: readonly PreferenceType[] = ['call_incoming', 'payout_failed', 'support_reply']

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

  /** The user may have been deleted since the request began. Called inside a `write`.
   *  @throws session_ended */
  function mustBePresent(userId: string): void {
    if (!store.findPerson(userId)) throw new AppError('session_ended')
  }

  return {
    channelsOf,
    list,
    /** @throws validation_error for a type that cannot be switched off in the app · session_ended (the user was deleted) */
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

/** Without a login. */
export function createMailPreferences({ links, preferences, store }: NotificationParts) {
  /** Undefined for a removed person too, and for a former address, which may be in other hands. */
  function personOf(token: string) {
    const link = links.read(token)
    const person = link && store.findPerson(link.userId)
    return person && link.wasSentTo(person.email) ? link : undefined
  }

  function typesFor(userId: string) {
    const known = preferences.list(userId)
    const isKnown = new Set<string>(known.map(([type]) => type))
    const received = store.listReceivedTypes(userId).filter((type) => !isKnown.has(type))
    const more = received.map((type) => [type, preferences.channelsOf(userId, type)] as const)
    return preferencesView([...known, ...more])
  }

  return {
    isSigned: (token: string) => links.read(token) !== undefined,
    /** Undefined for a removed person and a former address. */
    find(token: string) {
      const person = personOf(token)
      return person && { about: person.types, types: typesFor(person.userId) }
    },
    async unsubscribe(token: string): Promise<void> {
      const { userId, types } = personOf(token) ?? { userId: '', types: [] }
      if (types.length === 0) return
      await preferences.update(
        userId,
        types.map((type) => [type, { email: false }]),
      )
    },
    /** Changes what differs from the form as it was opened: other preferences may have changed in the app since. A type
     *  without a change gets no preference of its own: those of the platform are limited.
     *  @param chosen the channels that are on, such as `follow_new.email` */
    async change(token: string, chosen: ReadonlySet<string>, before: ReadonlySet<string>) {
      const person = personOf(token)
      if (!person) return
      const body = Object.entries(typesFor(person.userId)).map(([type, channels]) => {
        const isOn = (channel: string) => chosen.has(`${type}.${channel}`)
        const wasOn = (channel: string) => before.has(`${type}.${channel}`)
        const changed = Object.keys(channels).filter(
          (channel) => isOn(channel) !== wasOn(channel) && !isAlwaysOn(type, channel),
        )
        return [type, Object.fromEntries(changed.map((channel) => [channel, isOn(channel)]))]
      })
      await preferences.update(person.userId, changesOf(Object.fromEntries(body)))
    },
    isAlwaysOn,
  }
}

const isAlwaysOn = (type: string, channel: string) =>
  channel === 'in_app' && alwaysInApp.some((known) => known === type)
