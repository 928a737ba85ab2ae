import { S3Client, type S3File } from 'bun'
import { createSemaphore } from '../lib/concurrency.ts'
import { type FileStorage, mustBeFileKey } from './storage.ts'

/** A bucket of an S3-compatible store, with its credentials. */
export type Bucket = {
  endpoint: string
  name: string
  /** Without slashes at either end; may be empty. */
  prefix: string
  region: string
  accessKeyId: string
  secretAccessKey: string
}

/** The smallest part size that S3 allows. */
const partBytes = 5 * 1_024 * 1_024
/** Each upload holds one or two parts in memory. */
const concurrentUploads = 4
const pieceBytes = 512 * 1_024
const chunkBytes = 64 * 1_024

export function openBucket(bucket: Bucket): S3Client {
  const { endpoint, name, region, accessKeyId, secretAccessKey } = bucket
  return new S3Client({ endpoint, bucket: name, region, accessKeyId, secretAccessKey })
}

/** Stores files in a bucket. Spools uploads to the disk first, because clients are slow and each upload to a bucket holds
 *  parts in memory.
 *  @param spool storage for incomplete uploads */
export function createS3Storage(bucket: Bucket, spool: FileStorage): FileStorage {
  const client = openBucket(bucket)
  const limited = createSemaphore(concurrentUploads)
  const fileOf = (key: string) => client.file(objectName(bucket, mustBeFileKey(key)))

  return {
    async write(key, bytes) {
      await spool.write(key, bytes)
      await limited(async () => {
        const spooled = await spool.read(key, 0, Number.MAX_SAFE_INTEGER)
        if (spooled instanceof Blob) await upload(spooled, fileOf(key))
      })
      await spool.delete(key)
    },
    async read(key, start, end) {
      const pieces = piecesOf(fileOf(key), start, end)
      const first = await pieces.next().catch((error: unknown) => {
        if ((error as { code?: string }).code === 'NoSuchKey') return undefined
        throw error
      })
      return first && chunksOf(first, pieces)
    },
    async delete(key) {
      await spool.delete(key)
      await fileOf(key).delete()
    },
  }
}

/** Tests the bucket by writing and removing an object.
 *  @returns the reason for a failure; undefined on success */
export async function tryBucket(bucket: Bucket): Promise<string | undefined> {
  const file = openBucket(bucket).file(objectName(bucket, `check-${crypto.randomUUID()}`))
  try {
    await file.write('hostline check')
    await file.delete()
    return undefined
  } catch (error) {
    const { code, message } = error as { code?: string; message: string }
    return code === undefined ? message : `${code}: ${message}`
  }
}

const objectName = ({ prefix }: Bucket, key: string) => (prefix === '' ? key : `${prefix}/${key}`)

async function upload(from: Blob, to: S3File) {
  const writer = to.writer({ partSize: partBytes, queueSize: 1, retry: 2 })
  for await (const chunk of from.stream()) {
    writer.write(chunk)
    await writer.flush()
  }
  await writer.end()
}

// Bun buffers a whole object faster than a slow client reads, so fetch it in pieces.
async function* piecesOf(file: S3File, start: number, end: number) {
  for (let at = start; at < end; at += pieceBytes) {
    yield await file.slice(at, Math.min(end, at + pieceBytes)).bytes()
  }
}

type Pieces = ReturnType<typeof piecesOf>

async function* chunksOf(first: Awaited<ReturnType<Pieces['next']>>, others: Pieces) {
  for (let piece = first; !piece.done; piece = await others.next()) {
    for (let at = 0; at < piece.value.byteLength; at += chunkBytes) {
      yield piece.value.subarray(at, at + chunkBytes)
    }
  }
}
