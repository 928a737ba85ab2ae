import { Type } from '@sinclair/typebox'
import { described, Schema } from '../../api/fields.ts'
import type { Core, ExportedList } from '../../core.ts'
import type { ByUser } from '../../db/audit-trail.ts'
import { minute, timeLeft } from '../../lib/clock.ts'
import { AppError, throttled } from '../../lib/errors.ts'
import type { UserPrincipal } from '../../lib/principal.ts'
import { ManagedUser } from './model.ts'
import type { UserRow } from './store.ts'

/** Longer than the server's idle timeout, which ends the export of a client that stops reading. */
const unreadMilliseconds = minute
const rowsAtOnce = 200

type Lists = Record<string, ExportedList>

export function createExportSchema(lists: Lists) {
  const fields = Object.entries(lists).map(([name, { item, description }]) => [
    name,
    described(Type.Array(item), description),
  ])
  return Schema('Export', { user: ManagedUser, ...Object.fromEntries(fields) })
}

export type SendExport = (
  user: UserRow,
  reader: { user: UserPrincipal; byUser: ByUser },
  signal: AbortSignal,
) => Promise<Response>

/** Ends a stream with an error as soon as it is not allowed any more, so that its reader sees that it is incomplete. */
export async function* whileAllowed<T>(pieces: AsyncIterable<T>, isAllowed: () => boolean) {
  for await (const piece of pieces) {
    if (!isAllowed()) throw new AppError('session_ended')
    yield piece
  }
}

/** At the reader's pace. */
export function createExports({ write, audit, clock }: Core, lists: Lists) {
  const running = new Map<string, { readAt: number }>()

  // After a minute without a read, another export may have replaced this one.
  function end(userId: string, own: { readAt: number }) {
    if (running.get(userId) === own) running.delete(userId)
  }

  async function* follow(userId: string, own: { readAt: number }, pieces: AsyncIterable<string>) {
    try {
      for await (const piece of pieces) {
        own.readAt = clock.now()
        yield piece
      }
    } finally {
      end(userId, own)
    }
  }

  return {
    /** @param user the first field of the export
     *  @param signal of the request
     *  @throws quota_exceeded: one export at a time and five an hour for each user */
    async begin(userId: string, user: object, by: ByUser, signal: AbortSignal) {
      const wait = timeLeft(running.get(userId)?.readAt, unreadMilliseconds, clock.now())
      if (wait > 0) throw throttled('quota_exceeded', wait)
      const own = { readAt: clock.now() }
      running.set(userId, own)
      await write(() => {
        audit.mustHaveLeft(userId, 'data_exported')
        audit.record({ action: 'data_exported', ...by, target: { type: 'user', id: userId } })
      }).catch((error: unknown) => {
        end(userId, own)
        throw error
      })
      // The response to a client that has left is never read.
      if (signal.aborted) end(userId, own)
      return follow(userId, own, piecesOf(user, userId, lists))
    },
  }
}

/** Pauses for the event loop every few rows, omitted ones included. */
async function* piecesOf(user: object, userId: string, lists: Lists) {
  let piece = `{"user":${JSON.stringify(user)}`
  let rows = 0
  for (const [name, { each }] of Object.entries(lists)) {
    piece += `,${JSON.stringify(name)}:[`
    let separator = ''
    for (const row of each(userId)) {
      if (row !== undefined) {
        piece += separator + JSON.stringify(row)
        separator = ','
      }
      if (++rows % rowsAtOnce > 0) continue
      if (piece !== '') yield piece
      piece = ''
      await new Promise(setImmediate)
    }
    piece += ']'
  }
  yield `${piece}}`
}
