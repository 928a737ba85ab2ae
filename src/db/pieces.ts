import { closeSync, fsyncSync, lchownSync, openSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Write } from './writer.ts'

type Options = { size?: number; isStopping?: () => boolean; restMilliseconds?: number }

/** Splits a long write, so that others run in between: calls `next` with its previous result until it returns undefined.
 *  @returns the last result that was not undefined */
export async function inPieces<T>(
  write: Write,
  next: (limit: number, last: T | undefined) => T | undefined,
  { size = 100, isStopping = () => false, restMilliseconds = 0 }: Options = {},
): Promise<T | undefined> {
  let last: T | undefined
  for (;;) {
    const result = await write(() => next(size, last))
    if (result === undefined || isStopping()) return result ?? last
    last = result
    if (restMilliseconds > 0) await Bun.sleep(restMilliseconds)
  }
}

export const pieceBytes = 1_024 * 1_024

/** Pauses half of the time, to leave disk and cores to the server. */
export async function* throttled<T>(pieces: AsyncIterable<T> | Iterable<T>): AsyncGenerator<T> {
  let startedAt = performance.now()
  for await (const piece of pieces) {
    yield piece
    await Bun.sleep(performance.now() - startedAt)
    startedAt = performance.now()
  }
}

/** Files made by root belong to the owner of the directory. Links made by that owner are not followed. */
export function giveToOwner(directory: string, names: readonly string[]): void {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = statSync(directory)
  for (const name of names) lchownSync(join(directory, name), uid, gid)
}

export function syncPath(path: string): void {
  const file = openSync(path, 'r')
  fsyncSync(file)
  closeSync(file)
}
