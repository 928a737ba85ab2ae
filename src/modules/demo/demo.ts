import { Type } from '@sinclair/typebox'
import { hidden } from '../../api/operation.ts'
import type { Core, Module } from '../../core.ts'
import type { By } from '../../db/audit-trail.ts'
import type { RouteApp } from '../../http/request-context.ts'
import { hour } from '../../lib/clock.ts'
import { AppError } from '../../lib/errors.ts'
import type { Locale } from '../../lib/i18n.ts'
import { SlidingWindow } from '../../lib/limits.ts'
import type { Client } from '../../lib/principal.ts'

type Person = { email: string; display_name: string; locale?: Locale; external_id?: string }

type Neighbours = {
  upsertUser: (person: Person, by: By) => Promise<{ user: { id: string } }>
  createGuest: (person: Person, client: Client) => Promise<{ user: { id: string } }>
  openAnswered: (userId: string, authorId: string, ticket: AnsweredTicket) => Promise<unknown>
}

const Text = Type.String({ minLength: 1, maxLength: 500 })
/** The texts are in the language of the page. */
const AnsweredTicket = Type.Object({
  subject: Type.String({ minLength: 1, maxLength: 200 }),
  body: Text,
  answer: Text,
})
type AnsweredTicket = typeof AnsweredTicket.static

/** The limit of the whole service. These people do not count as registrations of a network address. */
const pairs = { count: 60, windowMilliseconds: hour }

const names = [
  'Amara Okafor',
  'Jonas Weber',
  'Léa Fontaine',
  'Mateo Ruiz',
  'Inês Duarte',
  'Priya Raman',
  'Zofia Nowak',
  'Noor Haddad',
  'Emil Lindqvist',
  'Kenji Mori',
] as const
const support = {
  email: 'support@demo.invalid',
  display_name: 'Support',
  external_id: 'demo-support',
}

export function createDemo(core: Core, { upsertUser, createGuest, openAnswered }: Neighbours) {
  const { clock, newId, settings } = core
  const begun = new SlidingWindow()
  let dealt = 0

  function mustBeAllowed() {
    if (settings.get('registration') === 'off') throw new AppError('registration_closed')
    begun.mustTake(pairs, clock.now())
  }

  /** Mail to `.invalid` is never delivered, so nobody can prove to own such an address. */
  function invent(locale: Locale): Person {
    const display_name = names[dealt++ % names.length] ?? names[0]
    return { display_name, email: `${newId().toLowerCase()}@demo.invalid`, locale }
  }

  const routes = (app: RouteApp) =>
    app.post(
      '/demo/people',
      async ({ body, context }) => {
        mustBeAllowed()
        const { client, locale } = context
        const left = await createGuest(invent(locale), client)
        const right = await createGuest(invent(locale), client)
        const desk = await upsertUser(support, { actor: { type: 'system' } })
        await openAnswered(left.user.id, desk.user.id, body)
        return { left, right }
      },
      { ...hidden, limit: 'default' as const, body: AnsweredTicket },
    )
  return { routes } satisfies Module
}
