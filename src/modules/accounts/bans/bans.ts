import { isDeepStrictEqual } from 'node:util'
import type { Static } from '@sinclair/typebox'
import {
  Body,
  Maybe,
  Nullable,
  OneOf,
  Sample,
  Schema,
  Text,
  Time,
  Timestamp,
} from '../../../api/fields.ts'
import { samples } from '../../../api/samples.ts'
import type { Core } from '../../../core.ts'
import type { By } from '../../../db/audit-trail.ts'
import { inPieces } from '../../../db/pieces.ts'
import { isoTime, parseTime, timeOrNull } from '../../../lib/clock.ts'
import { AppError, invalidField } from '../../../lib/errors.ts'
import { getById } from '../../../lib/ids.ts'
import { isWithinNetwork, locate, networkText, parseNetwork } from '../../../lib/ip-network.ts'
import { lazy } from '../../../lib/lazy.ts'
import type { ListRange } from '../../../lib/list-range.ts'
import { normalizeEmail } from '../../../lib/text.ts'
import { type BanKind, banKinds } from '../../../lib/vocabulary.ts'
import type { AccountParts } from '../account-parts.ts'
import { type BanRow, createBanStore } from '../store.ts'

export const banKind = OneOf(banKinds, {
  title: 'BanKind',
  description: 'The kind of thing that is banned.',
})
export const banValue = {
  description:
    'A mail domain, which includes its subdomains, an address, or a network (CIDR, up to /8 or an IPv6 /16) without admins.',
  examples: ['spam.example'],
}
export const NewBan = Body('NewBan', {
  kind: banKind,
  value: Text({ min: 1, max: 254, trimmed: true }, banValue),
  reason: Maybe(Text({ max: 200 }, { description: 'For admins.', examples: ['spam wave'] })),
  until: Maybe(Time({ description: 'When it ends; without it, never.' })),
})

export const Ban = Schema('Ban', {
  id: Sample(samples.recordId),
  kind: banKind,
  value: Nullable(Sample('spam.example'), {
    description: 'Null for an address, of which only a hash is kept.',
  }),
  reason: Nullable(Sample('spam wave')),
  created_at: Timestamp,
  until: Nullable(Timestamp),
})

export const banView = ({ createdAt, until, ...row }: BanRow): Static<typeof Ban> => ({
  ...row,
  value: row.kind === 'address' ? null : row.value,
  created_at: isoTime(createdAt),
  until: timeOrNull(until),
})

/** A network is parsed when it is first compared. */
const loaded = (row: BanRow) => ({ ...row, network: lazy(() => parseNetwork(row.value)) })

const formOf = { mail_domain: 'domain', address: 'email', network: 'network' } as const

const examinedPerWrite = 500

const loopback = ['127.0.0.1', '::1']

export type Bans = ReturnType<typeof createBans>

/** Kept in memory; of an address only the keyed hash is stored. */
export function createBans(core: Core, parts: AccountParts) {
  const { hashAddress, sessionStore } = parts
  const { write, afterCommit, audit, hub, newId, clock } = core
  const store = createBanStore(core.orm)
  const bans = new Map(store.listAll().map((row) => [row.id, loaded(row)]))

  const isOver = ({ until }: Pick<BanRow, 'until'>) => until !== null && until <= clock.now()

  function stored(kind: BanKind, text: string): string | undefined {
    const value = text.trim().toLowerCase()
    if (kind === 'network') return networkText(value)
    if (kind === 'mail_domain') return normalizeEmail(`any@${value}`)?.slice('any@'.length)
    const email = normalizeEmail(value)
    return email && hashAddress(email)
  }

  function coversEmail(email: string) {
    const domain = `.${email.split('@')[1]}`
    const hash = lazy(() => hashAddress(email))
    return ({ kind, value }: Pick<BanRow, 'kind' | 'value'>): boolean =>
      kind === 'address' ? value === hash() : kind === 'mail_domain' && domain.endsWith(`.${value}`)
  }

  function isBanned(email: string | undefined, ip: string | undefined): boolean {
    const isWithin = locate(ip ?? '')
    const isOfEmail = email === undefined ? () => false : coversEmail(email)
    return bans
      .values()
      .filter((ban) => !isOver(ban))
      .some((ban) => (ban.kind === 'network' ? isWithin(ban.network()) : isOfEmail(ban)))
  }

  /** @throws validation_error for a ban that would lock out an admin, also one who is logged in from a network, its author,
   *  or everybody behind a proxy */
  function mustSpareOurs(kind: BanKind, value: string, ip: string | undefined) {
    const admins = parts.store.listAdmins()
    if (admins.some(({ email }) => coversEmail(email)({ kind, value })))
      throw invalidField('value', 'of_admin')
    if (kind !== 'network') return
    const proxies = core.config.trustedProxies.map(([address]) => address.toString())
    const own = [...proxies, ...loopback, ...(ip === undefined ? [] : [ip])]
    const isWithin = (one: string) => isWithinNetwork(one, value)
    if (own.some(isWithin)) throw invalidField('value', 'own_network')
    const addresses = admins.flatMap(({ id }) => sessionStore.listAddresses(id))
    if (addresses.some(isWithin)) throw invalidField('value', 'of_admin')
  }

  function endSome(network: string, limit: number, after = ''): string | undefined {
    const some = sessionStore.listOrigins(after, limit)
    for (const { id, userId, ip, revokedAt } of some) {
      if (revokedAt !== null || ip === null || !isWithinNetwork(ip, network)) continue
      sessionStore.revoke(id, userId)
      afterCommit(() => hub.closeSession(userId, id))
    }
    return some.at(-1)?.id
  }

  function noteChange(action: 'ban_added' | 'ban_removed', row: BanRow, by: By) {
    const { id, kind, value } = row
    // An address does not enter the audit log.
    const details = { kind, ...(kind !== 'address' && { value }) }
    audit.record({ action, ...by, target: { type: 'ban', id }, details })
    // Retention deletes the rows later.
    afterCommit(() => {
      for (const one of bans.values()) if (isOver(one)) bans.delete(one.id)
    })
  }

  return {
    isBanned,
    mustNotBeBanned(email: string | undefined, ip: string | undefined): void {
      if (isBanned(email, ip)) throw new AppError('banned')
    },
    /** Adds or changes a ban, and ends the sessions of a network.
     *  @throws validation_error (`value`: invalid, or covers an admin, the client or this machine; `until`: in the past) */
    async add({ kind, reason = null, ...given }: Static<typeof NewBan>, by: By): Promise<BanRow> {
      const value = stored(kind, given.value)
      const until = parseTime(given.until ?? '') ?? null
      if (value === undefined) throw invalidField('value', formOf[kind])
      mustSpareOurs(kind, value, by.ip)
      if (until !== null && until <= clock.now()) throw invalidField('until', 'in_the_past')
      const row = await write(() => {
        const ban = { kind, value, reason, until }
        const before = store.find(kind, value)
        const added = store.upsert({ id: newId(), createdAt: clock.now(), ...ban })
        afterCommit(() => bans.set(added.id, loaded(added)))
        if (!isDeepStrictEqual(before, added)) noteChange('ban_added', added, by)
        return added
      })
      // It may be removed meanwhile.
      const end = (limit: number, last?: string) =>
        bans.has(row.id) ? endSome(value, limit, last) : undefined
      if (kind === 'network') await inPieces(write, end, { size: examinedPerWrite })
      return row
    },
    remove: (idText: string, by: By): Promise<void> =>
      write(() => {
        const removed = getById(idText, store.delete)
        afterCommit(() => bans.delete(removed.id))
        noteChange('ban_removed', removed, by)
      }),
    /** Newest first. A value is found in the form in which it was given; it needs its kind. */
    list(kind: BanKind | undefined, value: string | undefined, range: ListRange) {
      const wanted = kind && value !== undefined ? (stored(kind, value) ?? '') : undefined
      return store.list(kind, wanted, range)
    },
  }
}
