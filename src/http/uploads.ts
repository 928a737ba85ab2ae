import type { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Busboy } from '@fastify/busboy'
import { AppError, fileTooLarge, invalidField } from '../lib/errors.ts'
import { maxFormBytes } from './body.ts'

/** A file as it comes, with what it is said to be; empty texts where nothing is said. */
export type ComingFile = { name: string; type: string; bytes: AsyncIterable<Uint8Array> }
type Save = (file: ComingFile) => Promise<void>

/** A file in the body of a request, as it is or in a form. */
export type Upload = {
  /** How many bytes the file has at most, where the request tells. */
  announcedBytes: number | undefined
  /** Whether it has exactly that many. */
  isExact: boolean
  /** Calls `save` once and reads at its pace.
   *  @throws validation_error: a form without the field `file`, or none · body_too_large */
  receive: (save: Save) => Promise<void>
}

const nameHeader = 'x-file-name'

/** @throws validation_error (`X-File-Name`): not percent-encoded */
export function uploadOf(request: Request, maxBytes: number): Upload {
  const length = request.headers.get('content-length')
  const announcedBytes = length === null ? undefined : Number(length)
  const type = request.headers.get('content-type') ?? ''
  if (/^multipart\/form-data\s*(;|$)/i.test(type)) {
    const receive = (save: Save) => receiveForm(request, maxBytes, save)
    return { announcedBytes, isExact: false, receive }
  }
  const name = decodeName(request.headers.get(nameHeader) ?? '')
  return {
    announcedBytes: announcedBytes ?? (request.body ? undefined : 0),
    isExact: announcedBytes !== undefined,
    receive: (save) => save({ name, type, bytes: request.body ?? nothing() }),
  }
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

function decodeName(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw invalidField('X-File-Name', 'malformed_text')
  }
}

async function receiveForm(request: Request, maxBytes: number, save: Save): Promise<void> {
  const form = openForm(request.headers.get('content-type') ?? '')
  const saved = Promise.withResolvers<void>()
  let file: Readable | undefined
  form.once('file', (_field, bytes, ...[name = '', , type]) => {
    file = bytes
    // Also when nobody reads it any more.
    file.on('error', () => {})
    save({ name, type, bytes }).then(saved.resolve, saved.reject)
  })
  form.once('finish', () => {
    if (!file) saved.reject(invalidField('file', 'required'))
  })
  const stop = new AbortController()
  const source = bounded(request, maxBytes + maxFormBytes)
  const read = pipeline(source, form as Writable, { signal: stop.signal }).catch((cause) => {
    const error = cause instanceof AppError ? cause : invalidField('body', 'invalid')
    // Whoever reads the file would wait for its end.
    file?.destroy(error)
    throw error
  })
  try {
    await Promise.all([saved.promise, read])
  } finally {
    stop.abort()
  }
}

function openForm(contentType: string) {
  try {
    return new Busboy({
      headers: { 'content-type': contentType },
      limits: { files: 1, fields: 16, fieldSize: 1_024, parts: 32, headerPairs: 16 },
      isPartAFile: (field) => field === 'file',
    })
  } catch {
    throw invalidField('body', 'invalid')
  }
}

async function* bounded({ body }: Request, maxBytes: number) {
  let size = 0
  for await (const chunk of body ?? nothing()) {
    size += chunk.byteLength
    if (size > maxBytes) throw fileTooLarge(maxBytes - maxFormBytes)
    yield chunk
  }
}
