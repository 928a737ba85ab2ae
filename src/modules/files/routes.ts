import { OneOf, Text } from '../../api/fields.ts'
import { operations } from '../../api/operation.ts'
import { type ByteRange, prepareFileAnswer } from '../../http/file-answer.ts'
import { ListOf, listAnswer, listQuery, listRange } from '../../http/pagination.ts'
import type { RouteApp } from '../../http/request-context.ts'
import { uploadOf } from '../../http/uploads.ts'
import type { DeskPass } from './desk-pass.ts'
import {
  exportedFileView,
  type FileUrls,
  fileRoom,
  OwnFile,
  UploadedFile,
  uploadedFileView,
} from './model.ts'
import type { FileService } from './service.ts'
import type { FileRow } from './store.ts'
import { thumbnailWidths } from './thumbnails.ts'

const user = operations('Files', { access: 'user' })
const admin = operations('Files', { access: 'admin' })
// No limit, because a client asks for all pictures of a conversation at once.
const anybody = operations('Files', { access: 'public', limit: 'none' })

type Parts = { files: FileService; urls: FileUrls; pass: DeskPass; maxBytes: number }

export function fileRoutes(app: RouteApp, { files, urls, pass, maxBytes }: Parts) {
  app
    .post(
      '/v1/files',
      async ({ request, context, server }) => {
        const upload = uploadOf(request, maxBytes, server)
        const file = await files.upload(context.user.userId, upload, context.reauthorize)
        return uploadedFileView(file, urls)
      },
      user(
        'uploadFile',
        'Uploads a file, either as the body with its type as Content-Type, or as the field `file` of a form. The `file_*` fields of the response are those of a file message. A file that is unused for a day is removed.',
        {
          201: UploadedFile,
          headers: {
            'X-File-Name': Text(
              { max: 9_216 },
              { description: 'The file name in percent-encoded UTF-8; default: `file`.' },
            ),
          },
          maxFileBytes: maxBytes,
          errors: ['storage_full'],
        },
      ),
    )
    .get(
      '/v1/files',
      ({ query, context }) => {
        const range = listRange(query)
        const { userId } = context.user
        const listed = listAnswer(range, files.list(userId, range), (row) =>
          exportedFileView(row, urls),
        )
        return { ...listed, ...files.roomOf(userId) }
      },
      user(
        'listFiles',
        'Lists the files that you have uploaded, newest first, with the room that they take.',
        { 200: ListOf(OwnFile, fileRoom), query: listQuery() },
      ),
    )
    .get(
      '/v1/files/:id/:name',
      async ({ params, query, request, set, context }) => {
        const find = () => files.get(params.id, pass.isValid(params.id, request.url))
        const { w } = query as { w?: string } // the pipeline has checked it
        const thumbnail = w && (await files.readThumbnail(find(), Number(w)))
        // It may have been removed while the thumbnail was made.
        const file = find()
        const asShown = thumbnail ? shownThumbnail(file, thumbnail, w) : shown(file)
        const prepared = prepareFileAnswer(request, asShown, set.headers)
        const { range, status, headers } = prepared
        const read = ({ start, end }: ByteRange) =>
          thumbnail ? new Blob([thumbnail.slice(start, end)]) : files.read(file.id, { start, end })
        const body = range ? await read(range) : null
        if (request.method === 'HEAD') context.headLength = prepared.length
        if (file.removedAt !== null) headers['cache-control'] = 'private, no-store'
        set.status = status
        Object.assign(set.headers, headers)
        // Bun accepts an async iterable as a body, although its types do not.
        return new Response(body as Blob | null, { status, headers })
      },
      readable,
    )
    .delete(
      '/v1/files/:id',
      ({ params, context }) => files.withdrawOwn(context.user.userId, params.id),
      user(
        'deleteFile',
        'Removes a file of your own, also from messages, tickets and your profile. A file in a message is kept for reports for 30 days and counts towards your storage until then. A repeated call returns 404.',
        { 204: null },
      ),
    )
    .delete(
      '/v1/admin/files/:id',
      ({ params, context }) => files.removeAny(params.id, context.byUser),
      admin(
        'adminDeleteFile',
        'Removes any file with its bytes, also from messages, tickets, profiles and reports.',
        { 204: null },
      ),
    )
}

const readable = anybody(
  'downloadFile',
  'Downloads a file. Anybody with the URL may read it. Browsers display images, audio, video and PDF whose first bytes agree with their type, and download everything else.',
  {
    200: null,
    206: null,
    304: null,
    media: { '*/*': { schema: { type: 'string', format: 'binary' } } },
    query: {
      w: OneOf(thumbnailWidths.map(String), {
        description:
          'The width of a thumbnail of an image, as WebP, turned upright; of an animation its first picture. An image that cannot be decoded is sent as it is, as is any while the disk has too little room.',
      }),
    },
    headers: { Range: Text({ max: 64 }, { description: 'One range of bytes.' }) },
    errors: ['range_not_satisfiable'],
  },
)

function shown({ id, name, type, size, isInline }: FileRow) {
  return { name, type, size, isInline, tag: id.slice(0, tagLength) }
}

function shownThumbnail(file: FileRow, { length: size }: Uint8Array, width = '') {
  const { tag, name } = shown(file)
  const type = 'image/webp'
  return { name: `${name}.webp`, type, size, isInline: true, tag: `${tag}-${width}` }
}

const tagLength = 16
