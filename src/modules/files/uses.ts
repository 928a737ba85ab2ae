import type { Core } from '../../core.ts'
import { type FieldProblems, invalidField, problem, throwProblems } from '../../lib/errors.ts'
import type { DomainEvent } from '../../lib/events.ts'
import { type FileUrls, type UploadedFile, uploadedFileView } from './model.ts'
import type { FileStore } from './store.ts'

type Parts = { store: FileStore; urls: FileUrls; remove: (id: string) => void }

export type FileUses = ReturnType<typeof createFileUses>

/** What uses which file. Everything here is for inside a `write`, that of what uses the file: so nothing can name a file
 *  that is gone, and none goes that something names. */
export function createFileUses({ clock, events }: Core, { store, urls, remove }: Parts) {
  /** @returns false for an address of ours at which there is no file (any more) */
  function add(usedBy: string, url: string): boolean {
    const id = urls.idIn(url)
    return id === undefined || store.addUse(usedBy, id)
  }

  /** Its files go, but for those that something else uses. */
  function release(usedBy: string): void {
    for (const id of store.deleteUses(usedBy)) remove(id)
  }

  // A former picture may be taken up again for a day.
  function showPicture(userId: string, url: string | null) {
    for (const id of store.deleteUses(userId)) store.update(id, { unusedSince: clock.now() })
    if (url !== null && !add(userId, url)) throw invalidField('avatar_url', 'file_gone')
  }

  function follow({ type, ids, fileUrl }: DomainEvent) {
    const { message_id: messageId = '', user_id: userId = '' } = ids
    if (type === 'message.deleted') release(messageId)
    if (fileUrl === undefined) return
    if (type === 'user.created' || type === 'user.updated') showPicture(userId, fileUrl)
    if (type === 'message.created' && fileUrl !== null && !add(messageId, fileUrl)) {
      throw invalidField('file_url', 'file_gone')
    }
  }
  events.subscribe(follow)

  return {
    /** Keeps files for as long as `usedBy` does; what is gone, and addresses of others, are passed over. */
    use(usedBy: string, fileUrls: readonly string[]): void {
      for (const url of fileUrls) add(usedBy, url)
    },
    release,
    /** Keeps uploads of their owner.
     *  @returns what is known of them
     *  @throws validation_error for other addresses, somebody else's files, and those that are gone */
    attach(usedBy: string, ownerId: string, fileUrls: readonly string[]): UploadedFile[] {
      const details: FieldProblems = {}
      const attached: UploadedFile[] = []
      for (const [n, url] of fileUrls.entries()) {
        const file = store.find(urls.idIn(url) ?? '')
        if (file?.ownerId === ownerId && urls.urlOf(file) === url) {
          store.addUse(usedBy, file.id)
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
