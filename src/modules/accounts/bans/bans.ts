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

export type Bans = ReturnType<typeof createBans>

/** Mail domains with their subdomains, addresses and networks from which nobody may register or log in. They are kept in
 *  memory; of an address only the keyed hash is stored. */
export function createBans(core: Core, { hashAddress, sessionStore }: AccountParts) {
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

  function isBanned(email: string | undefined, ip: string): boolean {
    const now = clock.now()
    const live = bans.filter(({ until }) => until === null || until > now)
    if (live.length === 0) return false
    const [hash, domain] =
      email === undefined ? [] : [hashAddress(email), email.split('@')[1] ?? '']
    return live.some(({ kind, value }) => {
      if (kind === 'network') return isWithinNetwork(ip, value)
      return kind === 'address' ? value === hash : `.${domain}`.endsWith(`.${value}`)
    })
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
     *  @throws validation_error (`value`: invalid, or the network of the client; `until`: in the past) */
    async add({ kind, value: text, reason, until }: NewBan, by: By): Promise<BanRow> {
      const value = stored(kind, text)
      if (value === undefined) throw invalidField('value', 'invalid')
      if (kind === 'network' && by.ip !== undefined && isWithinNetwork(by.ip, value)) {
        throw invalidField('value', 'own_network')
      }
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
