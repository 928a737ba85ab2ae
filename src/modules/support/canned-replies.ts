import type { Write } from '../../db/writer.ts'
import { AppError } from '../../lib/errors.ts'
import { type NewId, parseId } from '../../lib/ids.ts'
import { type Listing, type ListRange, listById } from '../../lib/list-range.ts'
import type { CannedReplyRow, CannedReplyStore } from './canned-reply-store.ts'
import type { CannedReplyUpdate, NewCannedReply } from './model.ts'

export type CannedReplies = ReturnType<typeof createCannedReplies>

type CannedRepliesOptions = { store: CannedReplyStore; write: Write; newId: NewId }

/** Answers that admins keep ready (decisions 7). */
export function createCannedReplies({ store, write, newId }: CannedRepliesOptions) {
  return {
    /** Oldest first. */
    list: (range: ListRange): Listing<CannedReplyRow> => listById(range, store.list, store.count),

    create: ({ title, body }: NewCannedReply): Promise<CannedReplyRow> =>
      write(() => store.insert({ id: newId(), title: title.trim(), body: body.trim() })),

    /** What is absent stays.
     *  @throws not_found */
    update: (id: string, { title, body }: CannedReplyUpdate): Promise<CannedReplyRow> =>
      write(() => {
        const changes = {
          ...(typeof title === 'string' && { title: title.trim() }),
          ...(typeof body === 'string' && { body: body.trim() }),
        }
        const changed = store.update(parseId(id) ?? '', changes)
        if (!changed) throw new AppError('not_found')
        return changed
      }),

    /** @throws not_found */
    delete: (id: string): Promise<void> =>
      write(() => {
        if (!store.delete(parseId(id) ?? '')) throw new AppError('not_found')
      }),
  }
}
