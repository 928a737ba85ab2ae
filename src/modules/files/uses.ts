import type { Core } from '../../core.ts'
import { type FieldProblems, invalidField, problem, throwProblems } from '../../lib/errors.ts'
import type { DomainEvent } from '../../lib/events.ts'
import { type FileUrls, type UploadedFile, uploadedFileView } from './model.ts'
import type { FileService } from './service.ts'
import { type FileStore, logoUse, reportPrefix } from './store.ts'

type Parts = { store: FileStore; urls: FileUrls; files: FileService }

/** Records the files used by messages, profiles, tickets and reports. Called inside the `write` that stores the use, so that
 *  no row refers to a missing file, and only its owner or an admin removes a file in use. */
export function createFileUses({ events }: Core, { store, urls, files }: Parts) {
  /** @throws validation_error for a URL of this server that is not a file of the owner */
  function addOwn(usedBy: string, ownerId: string, use: { field: string; url: string }) {
    const id = urls.idIn(use.url)
    if (id === undefined || store.addUse(usedBy, id, ownerId)) return
    throw invalidField(use.field, 'not_your_file')
  }

  const detach = (usedBy: string): void => store.deleteUses(usedBy).forEach(files.expire)

  // A former picture is kept for a day, so that the user can select it again.
  function setPicture(userId: string, url: string | null) {
    detach(userId)
    if (url !== null) addOwn(userId, userId, { field: 'avatar_url', url })
  }

  function follow({ type, ...event }: DomainEvent) {
    const { ids, fileUrl } = event
    const { message_id: messageId = '', user_id: userId = '' } = ids
    if (type === 'message.deleted') store.listUsed(messageId).forEach(files.withdraw)
    if (fileUrl === undefined) return
    if (type === 'user.created' || type === 'user.updated') setPicture(userId, fileUrl)
    if (type === 'message.created' && fileUrl !== null) addToMessage(messageId, fileUrl, event)
  }

  type MessageFiles = Pick<DomainEvent, 'fileUrls' | 'fileOwnerId'>
  function addToMessage(id: string, first: string, { fileUrls, fileOwnerId = '' }: MessageFiles) {
    if (!fileUrls) return addOwn(id, fileOwnerId, { field: 'file_url', url: first })
    for (const [n, url] of fileUrls.entries()) {
      addOwn(id, fileOwnerId, { field: `attachments.${n}.file_url`, url })
    }
  }
  events.subscribe(follow)

  return {
    /** Keeps files while a report is open, including removed ones. */
    hold(reportId: string, fileUrls: readonly string[]): void {
      for (const url of fileUrls) store.addUse(reportPrefix + reportId, urls.idIn(url) ?? '')
    },
    release: (reportId: string): void => detach(reportPrefix + reportId),
    detach,
    /** Size and placeholder of an image of this server, in the form of the column `picture`. */
    pictureOf: (url: string): string | null => store.find(urls.idIn(url) ?? '')?.picture ?? null,
    /** @throws validation_error for other URLs, files of other users, and removed files */
    attach(usedBy: string, ownerId: string, fileUrls: readonly string[]): UploadedFile[] {
      const details: FieldProblems = {}
      const attached: UploadedFile[] = []
      for (const [n, url] of fileUrls.entries()) {
        const file = store.find(urls.idIn(url) ?? '')
        if (file?.ownerId === ownerId && urls.urlOf(file) === url) {
          store.addUse(usedBy, file.id, ownerId)
          attached.push(uploadedFileView(file, urls))
        } else details[`attachments.${n}.file_url`] = problem('not_your_file')
      }
      throwProblems(details)
      return attached
    },
    /** It may be anybody's upload.
     *  @throws validation_error (`logo_url`) for a URL that is not an image uploaded here */
    setLogo(url: string | null): void {
      detach(logoUse)
      if (url === null) return
      const file = store.find(urls.idIn(url) ?? '')
      if (!file?.isInline || !file.type.startsWith('image/') || urls.urlOf(file) !== url) {
        throw invalidField('logo_url', 'uploaded_image')
      }
      store.addUse(logoUse, file.id)
    },
    forget: (userId: string): void => setPicture(userId, null),
  }
}
