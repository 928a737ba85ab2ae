import { PermanentFailure } from '../lib/errors.ts'

/** Where files lie below a data directory. */
export const filesDirectory = 'files'

/** Whether a file of people may be called that. Names in a bucket or a database may be anybody's: others would be paths. */
export const isFileKey = (name: string): boolean => /^[\w-]{43}$/.test(name)

/** @returns the key itself
 *  @throws PermanentFailure when it is none */
export function mustBeFileKey(key: string): string {
  if (isFileKey(key)) return key
  throw new PermanentFailure('a file has a name that hostline gives none')
}

/** Where the bytes of files lie, each file under a key of its own that is never used again. */
export type FileStorage = {
  /** Keeps bytes as they come, without holding them in memory. What it resolves is safe against a power cut.
   *  @throws what `bytes` throws; a part may be left then, which `delete` takes away */
  write(key: string, bytes: AsyncIterable<Uint8Array>): Promise<void>
  /** The bytes from `start` on and before `end`, read at the pace of whoever takes them; undefined when there are none. */
  read(key: string, start: number, end: number): Promise<FileBytes | undefined>
  /** Also when there is nothing (left). */
  delete(key: string): Promise<void>
}

export type FileBytes = Blob | AsyncIterable<Uint8Array>
