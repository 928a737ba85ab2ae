import type { Write } from './writer.ts'

type Options = { size?: number; isStopping?: () => boolean }

/** Splits a long write into several, so that others come between: calls `next` with the most rows for one write and its
 *  own last result, until it returns undefined or `isStopping`.
 *  @returns its last result */
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
