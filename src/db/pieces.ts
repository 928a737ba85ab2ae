import type { Write } from './writer.ts'

type Options = { size?: number; isStopping?: () => boolean }

/** Splits a long write into several, so that other writes run in between. Calls `next` with the maximum number of rows and
 *  its previous result, until it returns undefined or `isStopping`.
 *  @returns the last result that was not undefined */
export async function inPieces<T>(
  write: Write,
  next: (limit: number, last: T | undefined) => T | undefined,
  { size = 100, isStopping = () => false }: Options = {},
): Promise<T | undefined> {
  let last: T | undefined
  for (;;) {
    const result = await write(() => next(size, last))
    if (result === undefined || isStopping()) return result ?? last
    last = result
  }
}
