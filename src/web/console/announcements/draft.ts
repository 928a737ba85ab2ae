import { effect, signal } from '@preact/signals'
import type { NewAnnouncement } from '../../../../client/src/contract.ts'
import { uniqueId } from '../../../../client/src/platform.ts'
import { plural } from '../../kit/format.ts'
import { fill, language, texts } from '../../kit/texts.tsx'
import { type Role, roleTitles } from '../people/roles.ts'
import { user } from '../session.ts'

export type Addressee = { id: string; name: string }
export type Draft = {
  audience: NewAnnouncement['audience']
  role: Role
  people: Addressee[]
  title: string
  body: string
  data: { key: string; value: string }[]
  /** Idempotency key of this draft. */
  clientId: string
}

const newDraft = (): Draft => ({
  audience: 'all',
  role: 'host',
  people: [],
  title: '',
  body: '',
  data: [],
  clientId: uniqueId(),
})

const storageKey = () => `hostline broadcast draft ${user.value?.id}`

/** The draft is kept over reloads. */
export const draft = signal<Draft>(newDraft())
effect(() => {
  draft.value = stored(storageKey())
})

function stored(key: string): Draft {
  try {
    return { ...newDraft(), ...JSON.parse(localStorage.getItem(key) ?? '{}') }
  } catch {
    return newDraft()
  }
}

export function changeDraft(changes: Partial<Draft>): void {
  draft.value = { ...draft.value, ...changes }
  try {
    localStorage.setItem(storageKey(), JSON.stringify(draft.value))
  } catch {
    // Storage is full or disabled: the draft lives only as long as the page.
  }
}

export function clearDraft(): void {
  localStorage.removeItem(storageKey())
  draft.value = newDraft()
}

export function announcementOf(given: Draft): NewAnnouncement {
  const { audience, role, people, title, body, data, clientId } = given
  const filled = data.filter(({ key }) => key.trim() !== '')
  const [first, ...others] = people.map(({ id }) => id)
  return {
    audience,
    ...(audience === 'role' && { role }),
    ...(audience === 'users' && first !== undefined && { user_ids: [first, ...others] }),
    title: title.trim(),
    body: body.trim(),
    ...(filled.length > 0 && {
      data: Object.fromEntries(filled.map(({ key, value }) => [key.trim(), value])),
    }),
    client_id: clientId,
  }
}

const words = texts.console.announcements
type Audience = { audience: Draft['audience']; role: Role | null; people?: Addressee[] }

/** The audience as part of a sentence. */
export function audienceText({ audience, role, people }: Audience): string {
  if (audience === 'users' && people) return namesText(people)
  return fill(words.audienceTexts[audience], { role: role === null ? '' : roleTitles[role] })
}

const namesShown = 3

function namesText(people: Addressee[]): string {
  const names = people.slice(0, namesShown).map(({ name }) => name)
  const left = people.length - names.length
  const others = left === 0 ? [] : [plural(words.others, left)]
  return new Intl.ListFormat(language.value).format([...names, ...others])
}
