import { Type } from '@sinclair/typebox'
import type { Core } from '../../core.ts'
import type { ByUser } from '../../db/audit-trail.ts'
import { quotaExceeded } from '../../lib/errors.ts'
import { ManagedUser, Session } from './model.ts'
import type { UserRow } from './store.ts'

const hour = 3_600_000
const perHour = 5
/** Whoever reads nothing for so long has gone, or may begin anew. */
const stuckMilliseconds = 60_000
const pieceLength = 65_536
const sliceMilliseconds = 5
/** Proxies and clients end a connection on which nothing comes. */
const silenceMilliseconds = 1_000

type Sections = (userId: string) => Record<string, Iterable<unknown>>

export const Export = Type.Object(
  { user: ManagedUser, sessions: Type.Array(Session) },
  { title: 'Export', additionalProperties: true },
)

/** Sends an export as it is made; `headers` are those of the answer. */
export type SendExport = (
  user: UserRow,
  by: ByUser,
  headers: Record<string, string | number>,
) => Promise<Response>

/** Everything that is kept of a person, as one JSON object, read and written piece by piece at the pace of its reader. */
export function createExports({ write, audit, clock }: Core, sectionsOf: Sections) {
  // When each running export made progress last.
  const running = new Map<string, number>()

  function mustBeAlone(userId: string) {
    const wait = (running.get(userId) ?? 0) + stuckMilliseconds - clock.now()
    if (wait > 0) throw quotaExceeded(wait)
  }

  async function* follow(userId: string, pieces: AsyncIterable<string>) {
    try {
      for await (const piece of pieces) {
        running.set(userId, clock.now())
        yield piece
      }
    } finally {
      running.delete(userId)
    }
  }

  return {
    /** @param user what the export begins with
     *  @throws quota_exceeded: one at a time of each person, and five an hour */
    async begin(userId: string, user: object, by: ByUser): Promise<AsyncGenerator<string>> {
      mustBeAlone(userId)
      running.set(userId, clock.now())
      await write(() => {
        const { times, firstAt } = audit.recent(userId, 'data_exported', hour)
        if (times >= perHour) throw quotaExceeded(firstAt + hour - clock.now())
        audit.record({ action: 'data_exported', ...by, target: { type: 'user', id: userId } })
      }).catch((error: unknown) => {
        running.delete(userId)
        throw error
      })
      return follow(userId, piecesOf(user, sectionsOf(userId)))
    },
  }
}

/** Others have the loop after each few milliseconds, however long the lists are. */
async function* piecesOf(user: object, sections: Record<string, Iterable<unknown>>) {
  let piece = ''
  let sliceEnd = performance.now() + sliceMilliseconds
  let pieceEnd = performance.now() + silenceMilliseconds
  for (const part of partsOf(user, sections)) {
    piece += part
    const now = performance.now()
    if (piece.length > pieceLength || now > pieceEnd) {
      // Between two values JSON allows a space.
      yield piece || ' '
      piece = ''
      pieceEnd = now + silenceMilliseconds
    }
    if (now < sliceEnd) continue
    await new Promise(setImmediate)
    sliceEnd = performance.now() + sliceMilliseconds
  }
  yield piece
}

/** One JSON object, part by part: a value, what stands between two, or nothing where much is passed over. */
function* partsOf(user: object, sections: Record<string, Iterable<unknown>>): Generator<string> {
  yield `{"user":${JSON.stringify(user)}`
  for (const [name, list] of Object.entries(sections)) {
    yield `,${JSON.stringify(name)}:[`
    let separator = ''
    for (const item of list) {
      yield item === undefined ? '' : separator + JSON.stringify(item)
      if (item !== undefined) separator = ','
    }
    yield ']'
  }
  yield '}'
}
