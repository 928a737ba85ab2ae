import type { Write } from '../../db/writer.ts'
import type { Clock } from '../../lib/clock.ts'
import { AppError, type FieldProblems, problem } from '../../lib/errors.ts'
import { parseId } from '../../lib/ids.ts'
import { textProblem } from '../../lib/text.ts'
import type { CallState } from '../../lib/vocabulary.ts'
import type { CallRow, CallStore } from './call-store.ts'

/** What the platform tells about a call. */
export type CallReport = { state: CallState; hostId: string; guestId: string }

export type Calls = ReturnType<typeof createCalls>

/** Notifies a user, inside a `write`. */
export type Notify = (
  userId: string,
  event: {
    type: 'call_incoming' | 'call_missed' | 'follow_new'
    data: Record<string, string>
    dedupeKey: string
  },
) => void

const notificationOf: Partial<Record<CallState, 'call_incoming' | 'call_missed'>> = {
  ringing: 'call_incoming',
  missed: 'call_missed',
}

const lapseMilliseconds = 4 * 3_600_000
const idRule = { min: 1, max: 128, noControlCharacters: true }

/** Which state may follow which: a call only moves on, and what comes late or again changes nothing. */
const rank: Record<CallState, number> = { ringing: 0, active: 1, ended: 2, missed: 2 }

/** Calls of the platform, as far as the right to chat depends on them (decisions 5 and 9). */
export function createCalls({
  store,
  write,
  clock,
  notify,
}: {
  store: CallStore
  write: Write
  clock: Clock
  notify: Notify
}) {
  function partiesOf({ hostId: hostText, guestId: guestText }: CallReport) {
    const [hostId, guestId] = [knownUser(hostText), knownUser(guestText)]
    const details: FieldProblems = {
      ...(hostId === undefined && { host_id: problem('unknown_user') }),
      ...(guestId === undefined && { guest_id: problem('unknown_user') }),
      ...(hostId !== undefined && hostId === guestId && { guest_id: problem('oneself') }),
    }
    if (hostId === undefined || guestId === undefined || Object.keys(details).length > 0) {
      throw new AppError('validation_error', { details })
    }
    return { hostId, guestId }
  }

  function knownUser(idText: string): string | undefined {
    const id = parseId(idText)
    return id !== undefined && store.hasUser(id) ? id : undefined
  }

  function tellHost({ id, hostId, guestId, state }: CallRow) {
    const type = notificationOf[state]
    const data = { call_session_id: id, guest_id: guestId }
    if (type) notify(hostId, { type, data, dedupeKey: `${type}:${id}` })
  }

  return {
    /** Takes a report of a call's state, and tells the host of one that rings or was missed; a report that is out of order or repeated changes nothing.
     *  @returns the call as it stands
     *  @throws not_found (no such id can be) · validation_error (unknown users) · conflict (other users than before) */
    async report(id: string, report: CallReport): Promise<CallRow> {
      if (!isCallId(id)) throw new AppError('not_found')
      const parties = partiesOf(report)
      const { state } = report
      return write(() => {
        const before = store.find(id)
        if (before && !isSamePair(before, parties)) throw new AppError('conflict')
        if (before && !isNext(before.state, state)) return before
        const now = clock.now()
        const activeAt = state === 'active' ? now : (before?.activeAt ?? null)
        const call = { id, ...parties, state, activeAt, updatedAt: now }
        store.upsert(call)
        tellHost(call)
        return call
      })
    },

    /** Whether two users are in a call that has not lapsed, whoever of them is the host. */
    areInCall(userId: string, otherId: string): boolean {
      const since = clock.now() - lapseMilliseconds
      return store.hasActive(userId, otherId, since) || store.hasActive(otherId, userId, since)
    },
  }
}

// The router gives null for a path that cannot be decoded.
function isCallId(id: string | null): boolean {
  return id !== null && !textProblem(id, idRule)
}

// Nobody missed a call in which they were.
function isNext(before: CallState, after: CallState) {
  return rank[after] > rank[before] && !(before === 'active' && after === 'missed')
}

type Parties = { hostId: string; guestId: string }

function isSamePair(a: Parties, b: Parties) {
  return a.hostId === b.hostId && a.guestId === b.guestId
}
