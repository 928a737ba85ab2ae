/** Where files lie below a data directory. */
export const filesDirectory = 'files'

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
