import type { Core } from '../../core.ts'
import type { ByUser } from '../../db/audit-trail.ts'
import { createFanOut } from '../../jobs/fan-out.ts'
import type { JobHandler } from '../../jobs/runner.ts'
import { AppError } from '../../lib/errors.ts'
import { getById } from '../../lib/ids.ts'
import type { AnnouncementItem, AnnouncementRow, AnnouncementStore } from './announcement-store.ts'
import type { Notifier } from './notifier.ts'

type AnnouncementDraft = Pick<
  AnnouncementRow,
  'audience' | 'role' | 'userIds' | 'title' | 'body' | 'data'
> & { clientId: string | undefined }

type Parts = {
  store: AnnouncementStore
  notifier: Notifier
  isPresent: (userId: string) => boolean
}

export type Announcements = ReturnType<typeof createAnnouncements>

/** Delivery stops when the sender is no longer an admin. */
export function createAnnouncements(core: Core, { store, notifier, isPresent }: Parts) {
  const { write, outbox, audit, newId, clock, events } = core
  const fanOut = createFanOut<AnnouncementRow>(core, {
    find: store.find,
    listNext,
    deliver({ id, title, body, data: given }, userId) {
      const data = { ...given, broadcast_id: id }
      const event = { type: 'broadcast', title, body, data, isCopy: true } as const
      return notifier.notify(userId, event).kind === 'created'
    },
    updateProgress: ({ id, deliveredCount }, delivered, lastUserId) =>
      store.update(id, { deliveredCount: deliveredCount + delivered, lastUserId }),
    updateCompleted({ id }) {
      events.publish({ type: 'broadcast.completed', ids: { announcement_id: id } })
      return store.update(id, { completedAt: clock.now() })
    },
  })

  function listNext(announcement: AnnouncementRow, limit: number): string[] {
    const { audience, role, userIds, lastUserId, senderId } = announcement
    if (!store.maySend(senderId)) return []
    if (audience !== 'users') return store.listPeople(role, lastUserId, limit)
    return (userIds ?? []).filter((id) => id > lastUserId).slice(0, limit)
  }

  function audienceOf({ audience, role, userIds }: AnnouncementDraft) {
    if (audience === 'users') {
      const { ids, unknown } = notifier.peopleOf(userIds ?? [])
      return { to: { role: null, userIds: ids.sort(), recipientsCount: ids.length }, unknown }
    }
    const recipientRole = audience === 'role' ? role : null
    const recipientsCount = store.countPeople(recipientRole)
    return { to: { role: recipientRole, userIds: null, recipientsCount }, unknown: [] }
  }

  const presentOf = (first: AnnouncementRow): AnnouncementRow => ({
    ...first,
    userIds: first.userIds?.filter(isPresent) ?? null,
  })

  function begin(by: ByUser, draft: AnnouncementDraft) {
    const senderId = by.actor.id
    const { to, unknown } = audienceOf(draft)
    const content = { ...draft, ...to }
    const { clientId } = draft
    const first = clientId === undefined ? undefined : store.findByClientId(senderId, clientId)
    if (first && contentKey(content) !== contentKey(presentOf(first)))
      throw new AppError('idempotency_mismatch')
    if (first) return { announcement: first, unknown, replayed: true }
    const row = store.insert({ ...content, id: newId(), senderId, createdAt: clock.now() })
    const target = { type: 'announcement', id: row.id } as const
    audit.record({ action: 'announcement_sent', ...by, target })
    const { row: announcement, isComplete } = fanOut.begin(row)
    if (!isComplete) outbox.add('announcement', { announcement_id: row.id })
    return { announcement, unknown, replayed: false }
  }

  return {
    job: (({ announcement_id }, run) =>
      fanOut.run(announcement_id, run)) satisfies JobHandler<'announcement'>,

    /** Notifies an audience. A repeated call with the same `clientId` and content returns the first announcement. Unknown
     *  users of several are left out.
     *  @throws validation_error (`user_ids`: an unknown user who is the only one) · idempotency_mismatch */
    send: (by: ByUser, draft: AnnouncementDraft) => write(() => begin(by, draft)),

    list: store.list,

    /** @throws not_found */
    get: (idText: string): AnnouncementItem => getById(idText, store.findItem),
  }
}

type Content = Omit<AnnouncementDraft, 'clientId'>

function contentKey({ audience, role, userIds, title, body, data }: Content) {
  return JSON.stringify([audience, role, userIds, title, body, Object.entries(data).sort()])
}
