import { hash } from 'node:crypto'
import type { FileBytes, FileStorage } from '../../files/storage.ts'
import { createKeyedSemaphore, createPacedQueue, createSemaphore } from '../../lib/concurrency.ts'
import type { ImageReply, ImageRequest } from './image-worker.ts'

export const thumbnailWidths = [160, 320, 640, 1_280] as const

export type StoredImage = { id: string; ownerId: string; size: number; orientation: number }

type Parts = { storage: FileStorage; imageWorker: URL; isDiskShort: () => boolean }

/** Made one at a time by a Worker, and stored beside their file, under keys derived from its id. */
export function createThumbnails({ storage, imageWorker, isDiskShort }: Parts) {
  const oneAtOnce = createSemaphore(1)
  // Many uploads take half of a core.
  const paced = createPacedQueue()
  // A user with many images must not delay those of others.
  const byOwner = createKeyedSemaphore(1)
  // A thumbnail is not written while its file is being removed.
  const byFile = createKeyedSemaphore(1)
  // Created with the first image: a thread costs startup time and memory.
  let worker: Worker | undefined

  const ask = (request: ImageRequest) =>
    new Promise<ImageReply>((resolve, reject) => {
      worker ??= new Worker(imageWorker.href, { ref: false })
      worker.onmessage = ({ data }: MessageEvent<ImageReply>) => resolve(data)
      worker.onerror = ({ message }) => {
        worker = undefined
        reject(new Error(`the image worker: ${message}`))
      }
      worker.postMessage(request)
    })

  const process = (image: StoredImage, width?: number) =>
    byOwner(image.ownerId, () => oneAtOnce(() => processNow(image, width)))

  async function processNow({ id, size, orientation }: StoredImage, width?: number) {
    const bytes = await storage.read(id, 0, size)
    if (bytes === undefined) return undefined
    const image = bytes instanceof Blob ? bytes : await bodyOf(bytes).blob()
    const work = () => ask({ image, orientation, width })
    return await (width === undefined ? paced(work) : work())
  }

  async function make(image: StoredImage, width: number, isStored: () => boolean) {
    const key = thumbnailKey(image.id, width)
    const known = await storage.read(key, 0, Number.MAX_SAFE_INTEGER)
    if (known) return await bodyOf(known).bytes()
    if (!isStored() || isDiskShort()) return undefined
    const made = await process(image, width)
    if (made) await storage.write(key, [made])
    return made
  }

  return {
    hash: async (image: StoredImage) => {
      const made = await process(image)
      return made && Buffer.from(made).toString('base64')
    },
    /** Only the first request makes it.
     *  @returns undefined when it cannot be decoded, its file was removed, or the disk has no room to keep it */
    get: (image: StoredImage, width: number, isStored: () => boolean) =>
      byFile(image.id, () => make(image, width, isStored)),
    delete: (id: string, isImage = true): Promise<void> =>
      byFile(id, async () => {
        // First, because a failing bucket refuses the rest.
        await storage.delete(id)
        if (!isImage) return
        for (const width of thumbnailWidths) await storage.delete(thumbnailKey(id, width))
      }),
  }
}

const thumbnailKey = (id: string, width: number) => hash('sha256', `${id} ${width}`, 'base64url')

// Bun accepts an async iterable as a body, although its types do not.
const bodyOf = (bytes: FileBytes) => new Response(bytes as Blob)
