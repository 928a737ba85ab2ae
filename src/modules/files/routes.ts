import { Elysia } from 'elysia'
import { prepareFileAnswer } from '../../http/file-answer.ts'
import { operations } from '../../http/operation.ts'
import { type RequestContext, routeBase } from '../../http/request-context.ts'
import { uploadOf } from '../../http/uploads.ts'
import { Text } from '../../lib/fields.ts'
import type { DeskPass } from './desk-pass.ts'
import { type FileUrls, UploadedFile, uploadedFileView } from './model.ts'
import type { FileService } from './service.ts'
import type { FileRow } from './store.ts'

const user = operations('Files', { access: 'user' })
const admin = operations('Files', { access: 'admin' })
// No limit, because a client asks for all pictures of a conversation at once.
const anybody = operations('Files', { access: 'public', limit: 'none' })

type Asked = {
  params: { id: string }
  request: Request
  context: RequestContext
  set: { status?: number | string; headers: Record<string, string | number> }
}
type Parts = { files: FileService; urls: FileUrls; pass: DeskPass; maxBytes: number }

export function fileRoutes({ files, urls, pass, maxBytes }: Parts) {
  async function answer({ params, request, set, context }: Asked) {
    const file = files.get(params.id, pass.isValid(params.id, request.url))
    const prepared = prepareFileAnswer(request, shown(file), set.headers)
    const { range, status, headers } = prepared
    const body = range ? await files.read(file.id, range) : null
    if (request.method === 'HEAD') context.headLength = prepared.length
    if (file.removedAt !== null) headers['cache-control'] = 'private, no-store'
    set.status = status
    Object.assign(set.headers, headers)
    // Bun accepts an async iterable as a body; the type does not say so.
    return new Response(body as Blob | null, { status, headers })
  }

  return new Elysia({ name: 'files' })
    .use(routeBase)
    .post(
      '/v1/files',
      async ({ request, context }) => {
        const upload = uploadOf(request, maxBytes)
        const file = await files.upload(context.user.userId, upload, context.reauthorize)
        return uploadedFileView(file, urls)
      },
      user(
        'uploadFile',
        'Uploads a file. The bytes are the body, with their type as Content-Type, or the field `file` of a form. The `file_*` fields of the answer are those of a file message. A file that nothing uses for a day is removed.',
        { 201: UploadedFile },
        {
          headers: {
            'X-File-Name': Text(
              { max: 9_216 },
              { description: 'Percent-encoded UTF-8; without it the name is `file`.' },
            ),
          },
          maxFileBytes: maxBytes,
          errors: ['storage_full'],
        },
      ),
    )
    .get('/v1/files/:id/:name', answer, readable)
    .delete(
      '/v1/files/:id',
      ({ params, context }) => files.withdrawOwn(context.user.userId, params.id),
      user(
        'deleteFile',
        'Removes a file of your own. Messages and tickets that show it lead nowhere then, and so does your picture. What a message showed is kept for reports for 30 days, and counts as your room until then. A repeated call answers 404.',
        { 204: null },
      ),
    )
    .delete(
      '/v1/admin/files/:id',
      ({ params, context }) => files.removeAny(params.id, context.byUser),
      admin(
        'adminDeleteFile',
        'Removes a file with its bytes, whoever uploaded it and whatever shows it, reports included.',
        { 204: null },
      ),
    )
}

const readable = anybody(
  'downloadFile',
  'Sends the bytes of a file. Whoever has the address may read it. Images, audio, video and PDF are shown in the browser; everything else is downloaded.',
  { 200: null, 206: null, 304: null },
  {
    headers: { Range: Text({ max: 64 }, { description: 'One range of bytes.' }) },
    errors: ['range_not_satisfiable'],
  },
)

function shown({ id, name, type, size, isInline }: FileRow) {
  return { name, type, size, isInline, tag: id.slice(0, tagLength) }
}

const tagLength = 16
