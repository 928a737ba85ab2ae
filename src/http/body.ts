import { AppError, invalidField, problem } from '../lib/errors.ts'

const maxBytes = 64 * 1_024
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Refuses a body that is too large before anything else is looked at. A declared length costs nothing to judge; a
 *  streamed body has to be read for it, and is returned.
 *  @throws body_too_large (413). Decisions 1, step 2. */
export async function guardBody(request: Request): Promise<Uint8Array | undefined> {
  const declared = request.headers.get('content-length')
  if (declared !== null && Number(declared) > maxBytes) throw tooLarge()
  return request.headers.has('transfer-encoding') ? readBounded(request) : undefined
}

/** The JSON value of a request body, undefined when there is none. `early` is what `guardBody` had to read.
 *  @throws validation_error blaming `body`: not application/json, not UTF-8, not JSON */
export async function readJson(request: Request, early: Uint8Array | undefined): Promise<unknown> {
  const bytes = early ?? new Uint8Array(await request.arrayBuffer())
  if (bytes.byteLength > maxBytes) throw tooLarge()
  if (bytes.byteLength === 0) return undefined
  const mediaType = request.headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase()
  if (mediaType !== 'application/json') throw invalidField('body', 'content_type')
  try {
    return JSON.parse(utf8.decode(bytes))
  } catch (cause) {
    const details = { body: problem('malformed_json') }
    throw new AppError('validation_error', { details, cause })
  }
}

async function readBounded(request: Request): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of request.body ?? []) {
    size += chunk.byteLength
    if (size > maxBytes) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function tooLarge() {
  return new AppError('body_too_large', { details: { body: problem('body_too_large') } })
}
