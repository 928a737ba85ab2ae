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

type Reader = { by: ByUser; signal: AbortSignal; isAllowed: () => boolean }

/** At the reader's pace. */
export function createExports({ write, audit, clock }: Core, lists: Lists) {
  const running = new Map<string, { readAt: number }>()

  return {
    /** @param user the first field of the export
     *  @param reader.signal of the request
     *  @throws quota_exceeded: one export at a time and five an hour for each user */
    async begin(userId: string, user: object, { by, signal, isAllowed }: Reader) {
      const wait = timeLeft(running.get(userId)?.readAt, unreadMilliseconds, clock.now())
      if (wait > 0) throw throttled('quota_exceeded', wait)
      const own = { readAt: clock.now() }
      running.set(userId, own)
      // After a minute without a read, another export may have replaced this one.
      function end() {
        if (running.get(userId) === own) running.delete(userId)
      }
      async function* pieces() {
        try {
          for await (const piece of piecesOf(user, userId, lists)) {
            // An error, so that the reader sees that the export is incomplete.
            if (!isAllowed()) throw new AppError('session_ended')
            own.readAt = clock.now()
            yield piece
          }
        } finally {
          end()
        }
      }
      await write(() => {
        audit.mustHaveLeft(userId, 'data_exported')
        audit.record({ action: 'data_exported', ...by, target: { type: 'user', id: userId } })
      }).catch((error: unknown) => {
        end()
        throw error
      })
      // The response to a client that has left is never read.
      if (signal.aborted) end()
      return pieces()
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
