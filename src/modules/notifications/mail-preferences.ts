import type { PreferenceLinks } from '../../outside/mail/preference-links.ts'
import { changesOf, preferencesView } from './model.ts'
import { alwaysInApp, type Preferences } from './preferences.ts'
import type { NotificationStore } from './store.ts'

type Parts = { links: PreferenceLinks; preferences: Preferences; store: NotificationStore }

/** Without a login. */
export function createMailPreferences({ links, preferences, store }: Parts) {
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
