import type { Static } from '@sinclair/typebox'
import type { Core, ResolveUser } from '../../core.ts'
import { hour } from '../../lib/clock.ts'
import { AppError, type FieldProblems, problem } from '../../lib/errors.ts'
import type { NotificationEvent } from '../../lib/events.ts'
import type { Listing, ListRange } from '../../lib/list-range.ts'
import { textProblem } from '../../lib/text.ts'
import type { CallState } from '../../lib/vocabulary.ts'
import type { CallUpdate } from './model.ts'
import type { CallRow, FeedStore } from './store.ts'

type Parties = { hostId: string; guestId: string }
type CallReport = Static<typeof CallUpdate>

export type NotifyAbout = (userId: string, otherId: string, event: NotificationEvent) => void

export type Calls = ReturnType<typeof createCalls>

const notificationTypes: Partial<Record<CallState, 'call_incoming' | 'call_missed'>> = {
  ringing: 'call_incoming',
  missed: 'call_missed',
}

const lapseMilliseconds = 4 * hour
const idRule = { min: 1, max: 128, noControlCharacters: true }

/** A call only moves to a higher rank, so that late and repeated reports change nothing. */
const rank: Record<CallState, number> = { ringing: 0, active: 1, ended: 2, missed: 2 }

export type CallParts = {
  store: FeedStore
  notify: NotifyAbout
  /** Like `ResolveUser`, but only for users who are not deleted. */
  findPresent: ResolveUser
  onChanged: (hostId: string, guestId: string) => void
}

export function createCalls({ config, write, clock }: Core, parts: CallParts) {
  const { store, notify, findPresent, onChanged } = parts

  /** A participant of a known call may have been removed since: an unknown reference then stands for that one. */
  function partiesOf(report: CallReport, known: CallRow | undefined): Parties {
    const hostId = findPresent(report.host_id) ?? removedUser(known?.hostId)
    const guestId = findPresent(report.guest_id) ?? removedUser(known?.guestId)
    const details: FieldProblems = {
      ...(hostId === undefined && { host_id: problem('unknown_user') }),
      ...(guestId === undefined && { guest_id: problem('unknown_user') }),
      ...(hostId !== undefined && hostId === guestId && { guest_id: problem('oneself') }),
    }
    if (hostId === undefined || guestId === undefined || hostId === guestId) {
      throw new AppError('validation_error', { details })
    }
    return { hostId, guestId }
  }

  const removedUser = (id: string | undefined) =>
    id === undefined || store.isPresent(id) ? undefined : id

  function notifyHost({ id, hostId, guestId, state }: CallRow) {
    const type = notificationTypes[state]
    const guest_name = store.findUser(guestId)?.displayName ?? ''
    const data = { call_session_id: id, guest_id: guestId, guest_name }
    if (type) notify(hostId, guestId, { type, data, dedupeKey: `${type}:${id}` })
  }

  function advance(id: string, { hostId, guestId }: Parties, state: CallState): CallRow {
    const before = store.findCall(id)
    if (before && (before.hostId !== hostId || before.guestId !== guestId)) {
      throw new AppError('idempotency_mismatch')
    }
    if (before && !mayFollow(before.state, state)) return before
    const now = clock.now()
    const activeAt = state === 'active' ? now : (before?.activeAt ?? null)
    const call = { id, hostId, guestId, state, activeAt, updatedAt: now }
    store.upsertCall(call)
    notifyHost(call)
    if (config.chatRequiresActiveCall) onChanged(hostId, guestId)
    return call
  }

  /** A call that has lapsed counts as ended. */
  function current(call: CallRow): CallRow {
    const isOver =
      call.state === 'active' && (call.activeAt ?? 0) <= clock.now() - lapseMilliseconds
    return isOver ? { ...call, state: 'ended' } : call
  }

  return {
    current,

    /** Records the state of a call and notifies the host of a ringing or missed one.
     *  @returns the call as it is now
     *  @throws not_found (invalid call id) · validation_error (unknown users) · idempotency_mismatch (a call of other
     *  users) */
    async report(id: string, report: CallReport): Promise<CallRow> {
      if (!isCallId(id)) throw new AppError('not_found')
      const parties = partiesOf(report, store.findCall(id))
      return write(() => current(advance(id, parties, report.state)))
    },

    list(state: CallState | undefined, range: ListRange): Listing<CallRow> {
      const found = store.listCalls(state, clock.now() - lapseMilliseconds, range)
      return { ...found, rows: found.rows.map(current) }
    },

    /** Whether a call was answered, missed or ended since a time (ms since the epoch). */
    hasStoppedRinging(id: string, since: number): boolean {
      const call = store.findCall(id)
      return call !== undefined && call.state !== 'ringing' && call.updatedAt > since
    },

    /** In either role, in a call that has not lapsed. */
    areInCall(userId: string, otherId: string): boolean {
      const since = clock.now() - lapseMilliseconds
      return (
        store.hasActiveCall(userId, otherId, since) || store.hasActiveCall(otherId, userId, since)
      )
    },
  }
}

// The router passes null for a path that cannot be decoded.
function isCallId(id: string | null): boolean {
  return id !== null && !textProblem(id, idRule)
}

// An active call was answered, so it can no longer be missed.
function mayFollow(before: CallState, after: CallState) {
  return rank[after] > rank[before] && !(before === 'active' && after === 'missed')
}
