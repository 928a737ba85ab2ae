import { PermanentFailure } from '../lib/errors.ts'

export const filesDirectory = 'files'

/** Whether a name has the form of a file key. Names from a bucket or a database are untrusted: they could be paths. */
export const isFileKey = (name: string): boolean => /^[\w-]{43}$/.test(name)

/** @throws PermanentFailure when it is not a file key */
export function mustBeFileKey(key: string): string {
  if (isFileKey(key)) return key
  throw new PermanentFailure('a file has an invalid name')
}

/** A key is never reused. */
export type FileStorage = {
  /** Stores a stream without holding it in memory. When it resolves, the file is safe against a power cut.
   *  @throws the errors of `bytes`; a partial file may remain, which `delete` removes */
  write(key: string, bytes: Chunks | Iterable<Uint8Array>): Promise<void>
  /** Reads the bytes from `start` (inclusive) to `end` (exclusive) at the consumer's pace; undefined for an unknown file. */
  read(key: string, start: number, end: number): Promise<FileBytes | undefined>
  /** Also succeeds for an unknown file. */
  delete(key: string): Promise<void>
}

export type Chunks = AsyncIterable<Uint8Array>
export type FileBytes = Blob | Chunks

/** A stream of which one piece was read. */
export async function* joined({ done, value }: IteratorResult<Uint8Array>, rest: Chunks) {
  if (!done) yield value
  yield* rest
}

/** A file with the name and type that the client states; both may be empty. */
export type ReceivedFile = { name: string; type: string; bytes: Chunks }

export type Upload = {
  announcedBytes: number | undefined
  isExact: boolean
  /** Calls `save` once, and reads as fast as `save` does.
   *  @throws validation_error: a form without the field `file`, or none · body_too_large */
  receive: (save: (file: ReceivedFile) => Promise<void>) => Promise<void>
}
