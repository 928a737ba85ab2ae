import { type Static, Type } from '@sinclair/typebox'
import {
  Count,
  described,
  mediaTypeProblem,
  pictureFields,
  pictureView,
  Sample,
  Schema,
  Timestamp,
} from '../../api/fields.ts'
import { samples } from '../../api/samples.ts'
import { isoTime } from '../../lib/clock.ts'
import { AppError, type FieldProblem } from '../../lib/errors.ts'
import { textProblem } from '../../lib/text.ts'
import type { FileRow } from './store.ts'

export const UploadedFile = Schema('UploadedFile', {
  id: Sample(samples.file.id),
  file_url: Sample(samples.file.url, { format: 'uri' }),
  file_name: Sample(samples.file.name),
  file_size: Count(samples.file.size),
  file_type: Sample(samples.file.type),
  ...pictureFields,
})
export type UploadedFile = Static<typeof UploadedFile>

const defaultName = 'file'
const defaultType = 'application/octet-stream'
/** Keeps the URL below the 2,048 characters that messages accept. */
const maxNameInUrl = 100

/** @throws validation_error (`file_name`) */
export function fileNameOf(text: string): string {
  const name = text.split(/[/\\]/).at(-1) ?? ''
  mustBeValid('file_name', textProblem(name, { max: 255, noControlCharacters: true }))
  return ['', '.', '..'].includes(name) ? defaultName : name
}

/** @throws validation_error (`file_type`) */
export function fileTypeOf(text: string): string {
  const type = text.split(';', 1)[0]?.trim().toLowerCase() || defaultType
  mustBeValid('file_type', mediaTypeProblem(type))
  return type
}

export const sniffedBytes = 4_100

const sameType: Record<string, string> = {
  'image/jpg': 'image/jpeg',
  'image/apng': 'image/png',
  'image/vnd.microsoft.icon': 'image/x-icon',
}

/** Whether a browser may display a file instead of downloading it: an image, audio, video or PDF whose first bytes match
 *  its type. Files that a browser could execute, such as SVG, never match. */
export async function isShownInline(type: string, head: Uint8Array): Promise<boolean> {
  if (!/^(image|audio|video)\/|^application\/pdf$/.test(type)) return false
  // Loaded at the first upload, to keep the start short.
  const { fileTypeFromBuffer } = await import('file-type')
  const found = (await fileTypeFromBuffer(head))?.mime ?? ''
  if (!isMedia(type)) return plain(found) === plain(type)
  return isMedia(found) || found === 'application/ogg'
}

// A container format may contain audio or video, so either type is accepted.
const isMedia = (type: string) => /^(audio|video)\//.test(type)
const plain = (type: string) => sameType[type] ?? type.split(';', 1)[0]

function mustBeValid(field: string, wrong: FieldProblem | undefined) {
  if (wrong) throw new AppError('validation_error', { details: { [field]: wrong } })
}

export type FileUrls = ReturnType<typeof createFileUrls>

/** Only the id identifies a file; the name is for people. */
export function createFileUrls(publicUrl: string) {
  return {
    urlOf({ id, name }: Pick<FileRow, 'id' | 'name'>): string {
      const end = [...name].slice(-maxNameInUrl).join('')
      return `${publicUrl}/v1/files/${id}/${encodeURIComponent(end)}`
    },
    /** The file id in a URL of this server, in any encoding; undefined for other URLs. */
    idIn(url: string): string | undefined {
      const { origin, pathname } = URL.parse(url) ?? {}
      const [, id] = /^\/v1\/files\/([^/]*)/.exec(pathname ?? '') ?? []
      return origin === publicUrl && id !== undefined ? decode(id) : undefined
    },
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

export function uploadedFileView(row: FileRow, { urlOf }: FileUrls): UploadedFile {
  const { id, name, size, type, picture } = row
  const file = { id, file_url: urlOf(row), file_name: name, file_size: size, file_type: type }
  return { ...file, ...pictureView(picture) }
}

export const OwnFile = Schema('OwnFile', { ...UploadedFile.properties, created_at: Timestamp })

export const ExportedFile = Schema('ExportedFile', {
  ...OwnFile.properties,
  removed_at: Type.Optional(
    described(Timestamp, 'Present only on removed files, which are kept for a while.'),
  ),
})

export const fileRoom = {
  used: Count(samples.file.size, 'Bytes that your files count; each counts at least 16 KiB.'),
  quota: Count(500_000_000, 'Bytes that they may count.'),
}

export function exportedFileView(row: FileRow, urls: FileUrls): Static<typeof ExportedFile> {
  const { createdAt, removedAt } = row
  const removed = removedAt !== null && { removed_at: isoTime(removedAt) }
  return { ...uploadedFileView(row, urls), created_at: isoTime(createdAt), ...removed }
}
