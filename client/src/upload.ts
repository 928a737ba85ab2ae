import type { Platform } from './platform.ts'
import { onAbort, reasonOf } from './waiting.ts'

/** In browsers, a `fetch` of one's own reports no progress: it cannot see any. */
export type Progress = (sentBytes: number, totalBytes: number) => void
export type FileBody = { bytes: Blob; onProgress?: Progress | undefined }

type FileRequest = FileBody & {
  method: string
  headers: Record<string, string>
  signal: AbortSignal
  /** Called with each progress, too. */
  onMoved: () => void
}

/** The slowest network that may still finish an upload whose progress is unknown. */
const bytesPerMillisecond = 16

/** Whether the progress of an upload can be observed: by an XMLHttpRequest where the `fetch` is the browser's or React
 *  Native's, else by a stream. Browsers stream uploads only over HTTP/2. */
function observes({ isOwnFetch }: Platform, { onProgress }: FileBody) {
  return surroundings.XMLHttpRequest ? isOwnFetch : onProgress && surroundings.ReadableStream
}

/** @param pause for requests without a file
 *  @returns the time after which an upload counts as stuck, with progress since the last one */
export const uploadMilliseconds = (platform: Platform, file: FileBody, pause: number) =>
  observes(platform, file) ? pause : pause + file.bytes.size / bytesPerMillisecond

export function sendFile(platform: Platform, url: string, request: FileRequest): Promise<Response> {
  const { bytes, onProgress, onMoved, ...init } = request
  const { XMLHttpRequest } = surroundings
  if (!observes(platform, request)) return platform.fetch(url, { ...init, body: bytes })
  if (XMLHttpRequest) return sendByXhr(new XMLHttpRequest(), url, request)
  const body = counted(bytes, (sent, total) => {
    onMoved()
    onProgress?.(sent, total)
  })
  return platform.fetch(url, { ...init, body, duplex: 'half' })
}

type Xhr = {
  open(method: string, url: string): void
  setRequestHeader(name: string, value: string): void
  send(body: Blob): void
  abort(): void
  getAllResponseHeaders(): string
  readonly status: number
  readonly responseText: string
  readonly upload: { onprogress: ((event: { loaded: number; total: number }) => void) | null }
  onload: (() => void) | null
  onerror: (() => void) | null
  onabort: (() => void) | null
}
const surroundings = globalThis as unknown as {
  XMLHttpRequest?: new () => Xhr
  ReadableStream?: unknown
}

function sendByXhr(request: Xhr, url: string, options: FileRequest): Promise<Response> {
  const { method, headers, signal, bytes, onProgress, onMoved } = options
  const forget = onAbort(signal, () => request.abort())
  const answered = new Promise<void>((resolve, reject) => {
    request.open(method, url)
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value)
    request.upload.onprogress = ({ loaded, total }) => {
      onMoved()
      onProgress?.(loaded, total)
    }
    request.onload = resolve
    request.onerror = reject
    request.onabort = () => reject(reasonOf(signal))
    request.send(bytes)
  })
  return answered.then(() => responseOf(request)).finally(forget)
}

function responseOf(request: Xhr) {
  const lines = [...request.getAllResponseHeaders().matchAll(/^(.+?): (.*?)\r?$/gm)]
  const headers = lines.map(([, ...pair]) => pair as [string, string]) // both groups
  return new Response(request.responseText, { status: request.status, headers })
}

const chunkBytes = 65_536

/** A body that reports its progress as it is read. */
function counted(bytes: Blob, onProgress: Progress) {
  let sentBytes = 0
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const chunk = await bytes.slice(sentBytes, sentBytes + chunkBytes).arrayBuffer()
      sentBytes += chunk.byteLength
      controller.enqueue(new Uint8Array(chunk))
      onProgress(sentBytes, bytes.size)
      if (sentBytes === bytes.size) controller.close()
    },
  })
}
