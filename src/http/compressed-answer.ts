import { hash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { isTagKnown } from './file-answer.ts'

type Bytes = Uint8Array<ArrayBuffer>

export type Compressed = { type: string; tag: string; plain: Bytes; forms: Form[] }
type Form = { encoding: string; bytes: Bytes }

/** Higher qualities take many times as long for a tenth of the size. */
const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }

/** Compresses content beside the event loop, so that its answers need not be compressed one by one. */
export async function compress(type: string, content: string | Bytes): Promise<Compressed> {
  const plain = Buffer.from(content)
  const tag = hash('sha256', plain, 'base64url').slice(0, 22)
  const forms = /^font\/|gzip$/.test(type) ? [] : await formsOf(plain)
  return { type, tag, plain, forms }
}

async function formsOf(plain: Bytes): Promise<Form[]> {
  const [br, gz] = await Promise.all([
    promisify(brotliCompress)(plain, quality),
    promisify(gzip)(plain, { level: 9 }),
  ])
  return [
    { encoding: 'br', bytes: Buffer.from(br) },
    { encoding: 'gzip', bytes: Buffer.from(gz) },
  ]
}

/** Sets `cache-control` to `no-cache`, a request each time, unless the route has set something else. */
export function compressedAnswer(
  { headers: known }: Request,
  set: { headers: Record<string, string | number>; status?: number | string },
  { type, tag, plain, forms }: Compressed,
): Bytes | undefined {
  const accepted = known.get('accept-encoding') ?? ''
  const form = forms.find(({ encoding }) => accepts(accepted, encoding))
  const { headers } = set
  // A strong tag names bytes, so each form has its own (RFC 9110, 8.8.3.3).
  const etag = `"${tag}${form ? `-${form.encoding}` : ''}"`
  headers['etag'] = etag
  headers['vary'] = headers['vary'] ? `${headers['vary']}, Accept-Encoding` : 'Accept-Encoding'
  if (headers['cache-control'] === 'no-store') headers['cache-control'] = 'no-cache'
  if (isTagKnown(known.get('if-none-match'), etag)) {
    set.status = 304
    return undefined
  }
  headers['content-type'] = type
  if (form) headers['content-encoding'] = form.encoding
  return form?.bytes ?? plain
}

function accepts(header: string, encoding: string): boolean {
  return header.split(',').some((part) => {
    const [name, weight = 'q=1'] = part.split(';').map((one) => one.trim().toLowerCase())
    return name === encoding && Number(weight.slice(2)) > 0
  })
}
