import type { Platform } from './platform.ts'
import { reasonOf } from './waiting.ts'

export type Progress = (sentBytes: number, totalBytes: number) => void

type FileRequest = {
  method: string
  headers: Record<string, string>
  signal: AbortSignal
  bytes: Blob
  onProgress?: Progress | undefined
}

export function sendFile(fetch: Platform['fetch'], url: string, request: FileRequest) {
  const { bytes, onProgress, ...init } = request
  if (!onProgress) return fetch(url, { ...init, body: bytes })
  const { XMLHttpRequest }: Surroundings = globalThis as never
  if (XMLHttpRequest) return sendByXhr(new XMLHttpRequest(), url, { ...request, onProgress })
  return fetch(url, { ...init, body: counted(bytes, onProgress), duplex: 'half' })
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
type Surroundings = { XMLHttpRequest?: new () => Xhr }

/** Used in browsers and React Native, whose `fetch` reports no progress. */
function sendByXhr(
  request: Xhr,
  url: string,
  { method, headers, signal, bytes, onProgress }: FileRequest & { onProgress: Progress },
): Promise<Response> {
  const abort = () => request.abort()
  const answered = new Promise<void>((resolve, reject) => {
    request.open(method, url)
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value)
    request.upload.onprogress = ({ loaded, total }) => onProgress(loaded, total)
    request.onload = () => resolve()
    request.onerror = () => reject(new TypeError('the network failed'))
    request.onabort = () => reject(reasonOf(signal))
    signal.addEventListener('abort', abort)
    request.send(bytes)
  })
  return answered
    .then(() => responseOf(request))
    .finally(() => signal.removeEventListener('abort', abort))
}

function responseOf(request: Xhr) {
  const lines = [...request.getAllResponseHeaders().matchAll(/^(.+?): (.*?)\r?$/gm)]
  const headers = lines.map(([, name = '', value = '']): [string, string] => [name, value])
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
