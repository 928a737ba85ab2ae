import { setImmediate } from 'node:timers/promises'
import { AppError, fileTooLarge, invalidBody, invalidField, problem } from '../lib/errors.ts'

const maxBytes = 64 * 1_024
// Choice: the API's bodies are flat, and validating deep nesting costs time.
const maxDepth = 16
const slowMilliseconds = 20
const utf8 = new TextDecoder('utf-8', { fatal: true })

export const maxFormBytes = 64 * 1_024

/** Time without traffic until a connection is closed, also while a client does not read its response. */
export const idleTimeoutSeconds = 30

/** @throws body_too_large (413) */
export function guardLength({ headers }: Request, maxFileBytes?: number): void {
  const length = Number(headers.get('content-length'))
  if (maxFileBytes === undefined && length > maxBytes) throw tooLarge()
  if (maxFileBytes !== undefined && length > maxFileBytes + maxFormBytes) {
    throw fileTooLarge(maxFileBytes)
  }
}

/** @param onSlow called when the body took long to arrive: earlier checks may no longer hold
 *  @throws validation_error (`body`) · body_too_large (413), for a streamed body as soon as the limit is exceeded */
export async function readJson(request: Request, onSlow: () => void): Promise<unknown> {
  const startedAt = performance.now()
  const bytes = await readBytes(request)
  const isSlow = performance.now() - startedAt > slowMilliseconds
  const value = parse(bytes, request.headers.get('content-type'))
  if (isSlow) onSlow()
  return value
}

/** @throws validation_error (`body`): incomplete · body_too_large (413) */
export async function readForm(request: Request) {
  const bytes = await readBytes(request)
  const headers = { 'content-type': request.headers.get('content-type') ?? '' }
  return new Response(bytes, { headers }).formData().catch(() => new FormData())
}

function parse(bytes: Uint8Array, contentType: string | null): unknown {
  if (bytes.byteLength === 0) return undefined
  const mediaType = contentType?.split(';', 1)[0]?.trim().toLowerCase()
  if (mediaType !== 'application/json') throw invalidField('body', 'content_type')
  try {
    const text = utf8.decode(bytes)
    if (!isDeeperThan(maxDepth, text)) return JSON.parse(text)
  } catch {
    // Refused below, like deep nesting.
  }
  throw invalidField('body', 'malformed_json')
}

const nesting: Record<string, number> = { '[': 1, '{': 1, ']': -1, '}': -1 }

function isDeeperThan(max: number, text: string): boolean {
  let depth = 0
  let isInText = false
  for (let i = 0; i < text.length && depth <= max; i++) {
    const character = text.charAt(i)
    if (character === '"') isInText = !isInText
    else if (!isInText) depth += nesting[character] ?? 0
    else if (character === '\\') i++
  }
  return depth > max
}

async function readBytes(request: Request) {
  try {
    if (request.headers.has('content-length')) return await request.bytes()
    return request.body ? await readBounded(request.body) : new Uint8Array()
  } catch (cause) {
    throw cause instanceof AppError ? cause : invalidBody(cause)
  }
}

/** One chunk in a turn of the event loop: a sender can make a chunk of each byte, and Bun joins those of a turn. */
export async function* inTurns(chunks: AsyncIterable<Uint8Array>) {
  for await (const chunk of chunks) {
    yield chunk
    await setImmediate()
  }
}

async function readBounded(body: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of inTurns(body)) {
    size += chunk.byteLength
    if (size > maxBytes) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function tooLarge() {
  return new AppError('body_too_large', { details: { body: problem('body_too_large') } })
}
