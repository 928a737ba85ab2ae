import { type Chunks, joined, type ReceivedFile, type Upload } from '../files/storage.ts'
import { AppError, fileTooLarge, invalidBody, invalidField } from '../lib/errors.ts'
import { idleTimeoutSeconds, inTurns, maxFormBytes } from './body.ts'

type Connections = { timeout(request: Request, seconds: number): void } | null
type Save = Parameters<Upload['receive']>[0]

const nameHeader = 'x-file-name'

/** @throws validation_error (`X-File-Name`): not percent-encoded */
export function uploadOf(request: Request, maxBytes: number, connections: Connections): Upload {
  const chunks = chunksOf(request, connections)
  const length = request.headers.get('content-length')
  const announcedBytes = length === null ? undefined : Number(length)
  const type = request.headers.get('content-type') ?? ''
  if (/^multipart\/form-data\s*(;|$)/i.test(type)) {
    const bytes = bounded(chunks, maxBytes)
    return { announcedBytes, isExact: false, receive: (save) => receiveForm(request, bytes, save) }
  }
  const name = decodeName(request.headers.get(nameHeader) ?? '')
  return {
    announcedBytes: announcedBytes ?? (request.body ? undefined : 0),
    isExact: announcedBytes !== undefined,
    receive: (save) => save({ name, type, bytes: chunks }),
  }
}

function decodeName(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw invalidField('X-File-Name', 'malformed_text')
  }
}

/** The parser emits the file's part of each chunk before it accepts the next, so memory holds at most one chunk. */
async function receiveForm(request: Request, bytes: Chunks, save: Save): Promise<void> {
  const form = await openForm(request.headers.get('content-type') ?? '')
  if (!request.body) throw invalidField('file', 'required')
  const found: Uint8Array[] = []
  let file: Omit<ReceivedFile, 'bytes'> | undefined
  const failed = new Promise<never>((_, reject) => {
    form.on('error', reject)
    form.once('partsLimit', endAtOnce)
    form.once('file', (_field, bytes, ...[name = '', , type]) => {
      file = { name, type }
      bytes.on('data', (piece) => found.push(piece)).on('error', reject)
    })
  })
  // A closing delimiter before the last part finishes the form early.
  const finished = new Promise<void>((resolve) => void form.once('finish', resolve))
  const unlessFailed = (work: Promise<void>) => Promise.race([work, failed])

  async function* piecesOfFile() {
    try {
      for await (const chunk of bytes) {
        await unlessFailed(new Promise((done) => void form.write(chunk, () => done())))
        yield* found.splice(0)
      }
      form.end()
      await unlessFailed(finished)
    } catch (cause) {
      if (cause instanceof AppError) throw cause
      throw invalidBody(cause)
    }
  }

  const pieces = piecesOfFile()
  try {
    const first = await pieces.next()
    if (!file) throw invalidField('file', 'required')
    await save({ ...file, bytes: joined(first, pieces) })
  } finally {
    await pieces.return()
  }
}

/** Thrown through the parser, which would otherwise take microseconds for each further part of its chunk. */
function endAtOnce(): never {
  throw invalidBody()
}

async function openForm(contentType: string) {
  // Loaded with the first form, because it also loads Node's streams.
  const { Busboy } = await import('@fastify/busboy')
  try {
    return new Busboy({
      headers: { 'content-type': contentType },
      limits: {
        files: 1,
        fields: 16,
        fieldSize: 1_024,
        parts: 32,
        headerPairs: 16,
        headerSize: 8_192,
      },
      isPartAFile: (field) => field === 'file',
      // A part that the parser skips stops it for ever if it has more than this in one chunk.
      fileHwm: Number.MAX_SAFE_INTEGER,
    })
  } catch {
    throw invalidBody()
  }
}

async function* bounded(chunks: Chunks, maxBytes: number) {
  let size = 0
  for await (const chunk of inTurns(chunks)) {
    size += chunk.byteLength
    if (size > maxBytes + maxFormBytes) throw fileTooLarge(maxBytes)
    yield chunk
  }
}

/** Bun buffers up to 1 MiB of unread body, then the sender waits. Each chunk is freed when the next is requested, because
 *  garbage would otherwise grow to hundreds of MB before it is collected. */
async function* chunksOf(request: Request, connections: Connections) {
  try {
    for await (const chunk of request.body ?? []) {
      // The runtime does so for each 480 KB only, and would end uploads of less than 16 KB a second.
      connections?.timeout(request, idleTimeoutSeconds)
      yield chunk
      const { buffer } = chunk
      if (buffer instanceof ArrayBuffer && buffer.byteLength === chunk.byteLength)
        buffer.transfer(0)
    }
  } catch (cause) {
    // The client broke off.
    throw invalidBody(cause)
  }
}
