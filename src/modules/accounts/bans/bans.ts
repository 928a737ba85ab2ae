import type { Core } from '../../../core.ts'
import type { By } from '../../../db/audit-trail.ts'
import { inPieces } from '../../../db/pieces.ts'
import { AppError, invalidField } from '../../../lib/errors.ts'
import { findById } from '../../../lib/ids.ts'
import { isWithinNetwork, networkText } from '../../../lib/ip-network.ts'
import type { ListRange } from '../../../lib/list-range.ts'
import { normalizeEmail } from '../../../lib/text.ts'
import type { BanKind } from '../../../lib/vocabulary.ts'
import type { AccountParts } from '../account-parts.ts'
import { type BanRow, createBanStore } from './ban-store.ts'

type NewBan = {
  kind: BanKind
  value: string
  reason: string | null
  /** Milliseconds since the epoch; null for ever. */
  until: number | null
}

const loopback = ['127.0.0.1', '::1']

export type Bans = ReturnType<typeof createBans>

/** Mail domains with their subdomains, addresses and networks from which nobody may register or log in. They are kept in
 *  memory; of an address only the keyed hash is stored. */
export function createBans(core: Core, parts: AccountParts) {
  const { hashAddress, sessionStore } = parts
  const { write, afterCommit, audit, hub, newId, clock } = core
  const store = createBanStore(core.orm)
  let bans = store.listAll()

  const reload = () => {
    bans = store.listAll()
  }

  /** The stored form of a value; undefined when it is invalid. */
  function stored(kind: BanKind, text: string): string | undefined {
    const value = text.trim().toLowerCase()
    if (kind === 'network') return networkText(value)
    if (kind === 'mail_domain') return normalizeEmail(`any@${value}`)?.slice('any@'.length)
    const email = normalizeEmail(value)
    return email && hashAddress(email)
  }

  function covers({ kind, value }: Pick<BanRow, 'kind' | 'value'>, email: string): boolean {
    if (kind === 'address') return value === hashAddress(email)
    return kind === 'mail_domain' && `.${email.split('@')[1]}`.endsWith(`.${value}`)
  }

  function isBanned(email: string | undefined, ip: string): boolean {
    const now = clock.now()
    const live = bans.filter(({ until }) => until === null || until > now)
    return live.some((ban) =>
      ban.kind === 'network'
        ? isWithinNetwork(ip, ban.value)
        : email !== undefined && covers(ban, email),
    )
  }

  /** @throws validation_error for a ban that would lock out an admin, also one who is logged in from a network, its author,
   *  or everybody behind a proxy */
  function mustSpareOurs(kind: BanKind, value: string, ip: string | undefined) {
    const admins = parts.store.listAdmins()
    if (admins.some(({ email }) => covers({ kind, value }, email)))
      throw invalidField('value', 'of_admin')
    if (kind !== 'network') return
    const proxies = core.config.trustedProxies.map(([address]) => address.toString())
    const own = [...proxies, ...loopback, ...(ip === undefined ? [] : [ip])]
    const isWithin = (one: string) => isWithinNetwork(one, value)
    if (own.some(isWithin)) throw invalidField('value', 'own_network')
    const addresses = admins.flatMap(({ id }) => store.listAddresses(id))
    if (addresses.some(isWithin)) throw invalidField('value', 'of_admin')
  }

  function endSome(network: string, limit: number, after = ''): string | undefined {
    const open = store.listOpenSessions(after, limit)
    for (const { id, userId, ip } of open) {
      if (ip === null || !isWithinNetwork(ip, network)) continue
      sessionStore.revoke(id, userId, clock.now())
      afterCommit(() => hub.closeSession(userId, id))
    }
    return open.at(-1)?.id
  }

  // An address does not enter the audit log.
  const detailsOf = ({ kind, value }: BanRow) => ({ kind, ...(kind !== 'address' && { value }) })

  return {
    isBanned,
    mustNotBeBanned(email: string | undefined, ip: string): void {
      if (isBanned(email, ip)) throw new AppError('banned')
    },
    /** Adds or changes a ban, and ends the sessions of a network.
     *  @throws validation_error (`value`: invalid, or covers an admin, the client or this machine; `until`: in the past) */
    async add({ kind, value: text, reason, until }: NewBan, by: By): Promise<BanRow> {
      const value = stored(kind, text)
      if (value === undefined) throw invalidField('value', 'invalid')
      mustSpareOurs(kind, value, by.ip)
      if (until !== null && until <= clock.now()) throw invalidField('until', 'in_the_past')
      const row = await write(() => {
        const added = store.upsert({
          id: newId(),
          kind,
          value,
          reason,
          createdAt: clock.now(),
          until,
        })
        const target = { type: 'ban', id: added.id } as const
        audit.record({ action: 'ban_added', ...by, target, details: detailsOf(added) })
        afterCommit(reload)
        return added
      })
      if (kind === 'network')
        await inPieces(write, (limit, last?: string) => endSome(value, limit, last))
      return row
    },
    remove: (idText: string, by: By): Promise<void> =>
      write(() => {
        const removed = findById(idText, store.delete)
        if (!removed) throw new AppError('not_found')
        const target = { type: 'ban', id: removed.id } as const
        audit.record({ action: 'ban_removed', ...by, target, details: detailsOf(removed) })
        afterCommit(reload)
      }),
    /** Newest first. A value is found in the form in which it was given; it needs its kind. */
    list(kind: BanKind | undefined, value: string | undefined, range: ListRange) {
      const wanted = kind && value !== undefined ? (stored(kind, value) ?? '') : undefined
      return store.list(kind, wanted, range)
    },
  }
}
