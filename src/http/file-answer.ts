import { create as contentDisposition } from 'content-disposition'
import { AppError, problem } from '../lib/errors.ts'

type Headers = Record<string, string | number>

/** Its bytes never change. */
export type ShownFile = { name: string; type: string; size: number; tag: string; isInline: boolean }

/** The bytes from `start` (inclusive) to `end` (exclusive). */
export type ByteRange = { start: number; end: number; isPart: boolean }

/** No file may act as a page of this origin: an opened file is sandboxed, has an opaque origin, and may load nothing but
 *  itself. Its player requests it from that origin, so CORS must allow every origin. */
const fileHeaders = {
  'content-security-policy':
    "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; sandbox",
  'cache-control': 'public, max-age=31536000, immutable',
  'cross-origin-resource-policy': 'cross-origin',
  'access-control-allow-origin': '*',
  'accept-ranges': 'bytes',
}

/** Scripts, styles and documents. They are served as application/octet-stream, so that no page of another origin can
 *  run them. */
const executableTypes =
  /script|^(multipart|message)|(^|[^a-z])(css|x?html|xml|svg|xslt?|wasm|flash)($|[^a-z])/i

/** @returns no range for 304
 *  @throws range_not_satisfiable */
export function prepareFileAnswer(request: Request, file: ShownFile, headers: Headers) {
  const etag = `"${file.tag}"`
  const { name, type, isInline } = file
  const common = {
    ...fileHeaders,
    etag,
    'content-type': isInline || !executableTypes.test(type) ? type : 'application/octet-stream',
    'content-disposition': contentDisposition(name, { type: isInline ? 'inline' : 'attachment' }),
  }
  if (isTagKnown(request.headers.get('if-none-match'), etag)) {
    return { range: undefined, status: 304, length: 0, headers: common }
  }
  const range = rangeOf(request, file.size, etag)
  if (range === 'unsatisfiable') {
    headers['content-range'] = `bytes */${file.size}`
    throw new AppError('range_not_satisfiable', { details: { Range: problem('invalid') } })
  }
  const { start, end, isPart } = range
  const length = end - start
  return {
    range: request.method === 'HEAD' ? undefined : range,
    status: isPart ? 206 : 200,
    length,
    headers: {
      ...common,
      'content-length': String(length),
      ...(isPart && { 'content-range': `bytes ${start}-${end - 1}/${file.size}` }),
    },
  }
}

export function isTagKnown(tags: string | null, etag: string): boolean {
  if (tags === null) return false
  return tags.split(',').some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')))
}

/** Choice: a request for several ranges gets the whole file. */
function rangeOf({ method, headers }: Request, size: number, etag: string) {
  const whole: ByteRange = { start: 0, end: size, isPart: false }
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/i.exec(headers.get('range') ?? '') ?? []
  const validator = headers.get('if-range')
  if (method !== 'GET' || first + last === '') return whole
  if (validator !== null && validator !== etag) return whole
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first)
  const end = first === '' || last === '' ? size : Math.min(size, Number(last) + 1)
  if (first !== '' && last !== '' && Number(last) < start) return whole
  return start >= size ? 'unsatisfiable' : { start, end, isPart: true }
}
