import type { Core } from '../../core.ts'
import { type FieldProblems, invalidField, problem, throwProblems } from '../../lib/errors.ts'
import type { DomainEvent } from '../../lib/events.ts'
import { type FileUrls, type UploadedFile, uploadedFileView } from './model.ts'
import type { FileService } from './service.ts'
import { type FileStore, reportPrefix } from './store.ts'

type Parts = { store: FileStore; urls: FileUrls; files: FileService }

export type FileUses = ReturnType<typeof createFileUses>

/** What uses which file. Everything here is for inside a `write`, that of what uses the file: so nothing can name a file
 *  that is gone, and none goes that something names, unless its owner or an admin removes it. */
export function createFileUses({ clock, events }: Core, { store, urls, files }: Parts) {
  /** @throws validation_error for an address of ours that is no upload of the owner */
  function addOwn(usedBy: string, ownerId: string, use: { field: string; url: string }) {
    const id = urls.idIn(use.url)
    if (id === undefined || store.addUse(usedBy, id, ownerId)) return
    throw invalidField(use.field, 'not_your_file')
  }

  // A former picture may be taken up again for a day.
  function showPicture(userId: string, url: string | null) {
    for (const { id } of store.deleteUses(userId)) store.update(id, { unusedSince: clock.now() })
    if (url !== null) addOwn(userId, userId, { field: 'avatar_url', url })
  }

  function follow({ type, ids, fileUrl, fileOwnerId = '' }: DomainEvent) {
    const { message_id: messageId = '', user_id: userId = '' } = ids
    if (type === 'message.deleted') store.listUsed(messageId).forEach(files.withdraw)
    if (fileUrl === undefined) return
    if (type === 'user.created' || type === 'user.updated') showPicture(userId, fileUrl)
    if (type === 'message.created' && fileUrl !== null) {
      addOwn(messageId, fileOwnerId, { field: 'file_url', url: fileUrl })
    }
  }
  events.subscribe(follow)

  return {
    /** Keeps files for as long as a report is open, also those that only the desk still sees. */
    hold(reportId: string, fileUrls: readonly string[]): void {
      for (const url of fileUrls) store.addUse(reportPrefix + reportId, urls.idIn(url) ?? '')
    },
    release(reportId: string): void {
      store.deleteUses(reportPrefix + reportId).forEach(files.expire)
    },
    /** Keeps uploads of their owner.
     *  @returns what is known of them
     *  @throws validation_error for other addresses, somebody else's files, and those that are gone */
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
    /** The picture of somebody who is gone. */
    forget: (userId: string): void => showPicture(userId, null),
  }
}
