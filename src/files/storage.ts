import { PermanentFailure } from '../lib/errors.ts'

/** Directory of the files, below the data directory. */
export const filesDirectory = 'files'

/** Whether a name has the form of a file key. Names from a bucket or a database are not trusted: others could be paths. */
export const isFileKey = (name: string): boolean => /^[\w-]{43}$/.test(name)

/** @returns the key itself
 *  @throws PermanentFailure when it is not a file key */
export function mustBeFileKey(key: string): string {
  if (isFileKey(key)) return key
  throw new PermanentFailure('a file has a name that hostline gives none')
}

/** Storage for the bytes of files. Each file has its own key, which is never used again. */
export type FileStorage = {
  /** Stores a stream without holding it in memory. Once resolved, the file is safe against a power cut.
   *  @throws what `bytes` throws; a partial file may be left, which `delete` removes */
  write(key: string, bytes: AsyncIterable<Uint8Array>): Promise<void>
  /** Reads the bytes from `start` to before `end`, at the consumer's pace; undefined when there is no such file. */
  read(key: string, start: number, end: number): Promise<FileBytes | undefined>
  /** Also succeeds when there is no such file. */
  delete(key: string): Promise<void>
}

export type FileBytes = Blob | AsyncIterable<Uint8Array>
