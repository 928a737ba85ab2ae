import type { Write } from '../../db/writer.ts'
import { createAudienceWalk } from '../../jobs/audience-walk.ts'
import type { Outbox } from '../../jobs/outbox.ts'
import type { JobHandler } from '../../jobs/runner.ts'
import type { Clock } from '../../lib/clock.ts'
import { AppError, invalidField } from '../../lib/errors.ts'
import { type NewId, parseId } from '../../lib/ids.ts'
import type { Role } from '../../lib/vocabulary.ts'
import type { AnnouncementRow, AnnouncementStore } from './announcement-store.ts'
import type { NotificationData } from './data-rules.ts'
import type { Notifier } from './notifier.ts'
import type { NotificationStore } from './store.ts'

export type AnnouncementDraft = {
  audience: AnnouncementRow['audience']
  role: Role | null
  userIds: readonly string[] | null
  title: string
  body: string
  data: NotificationData
  clientId: string | undefined
}

type AnnouncementsOptions = {
  store: AnnouncementStore
  people: Pick<NotificationStore, 'findPerson'>
  notifier: Notifier
  outbox: Outbox
  write: Write
  newId: NewId
  clock: Clock
}

export type Announcements = ReturnType<typeof createAnnouncements>

/** What admins tell many (decisions 8), each once. When its sender is no admin any more it reaches nobody further. */
export function createAnnouncements(options: AnnouncementsOptions) {
  const { store, people, notifier, outbox, write, newId, clock } = options
  const walk = createAudienceWalk({
    write,
    clock,
    walk: {
      find: store.findRunning,
      next: nextPeople,
      deliver: ({ id, title, body, data }: AnnouncementRow, userId) =>
        notifier.create(userId, {
          type: 'broadcast',
          title,
          body,
          data: { ...data, broadcast_id: id },
        }),
      updateProgress({ id }, outcomes, lastId) {
        const delivered = outcomes.filter(({ kind }) => kind === 'created').length
        return store.updateProgress(id, delivered, lastId)
      },
      updateCompleted: ({ id }) => store.updateCompleted(id, clock.now()),
      tell: notifier.tell,
    },
  })

  /** @throws validation_error (`user_ids`): somebody who is none */
  function audienceOf({ audience, role, userIds }: AnnouncementDraft) {
    if (audience !== 'users') {
      const only = audience === 'role' ? role : null
      return { role: only, userIds: null, recipientsCount: store.countPeople(only) }
    }
    const ids = [...new Set((userIds ?? []).map((id) => parseId(id) ?? ''))].sort()
    if (!ids.every((id) => people.findPerson(id))) throw invalidField('user_ids', 'unknown_user')
    return { role: null, userIds: ids, recipientsCount: ids.length }
  }

  function nextPeople(announcement: AnnouncementRow, limit: number): string[] {
    const { audience, role, userIds, lastUserId, senderId } = announcement
    if (!store.maySend(senderId)) return []
    if (audience !== 'users') return store.listPeople(role, lastUserId, limit)
    return (userIds ?? []).filter((id) => id > lastUserId).slice(0, limit)
  }

  function begin(senderId: string, draft: AnnouncementDraft) {
    const { audience, title, body, data, clientId } = draft
    const reached = audienceOf(draft)
    const first = clientId === undefined ? undefined : store.findByClientId(senderId, clientId)
    if (first && !saysTheSame({ ...draft, ...reached }, first)) throw new AppError('conflict')
    if (first) return { announcement: first, told: [], replayed: true }
    const row = store.insert({
      id: newId(),
      audience,
      ...reached,
      title,
      body,
      data,
      clientId,
      senderId,
      createdAt: clock.now(),
    })
    const { row: announcement, told, isComplete } = walk.begin(row)
    if (!isComplete) outbox.add('announcement', { announcement_id: row.id })
    return { announcement, told, replayed: false }
  }

  const job: JobHandler<'announcement'> = ({ announcement_id }, { isStopping }) =>
    walk.goOn(announcement_id, isStopping)

  return {
    /** Tells everybody in an audience; the same `clientId` with the same content gives the same announcement again.
     *  @throws validation_error (`user_ids`) · conflict (`clientId` was used for something else) */
    async send(senderId: string, draft: AnnouncementDraft) {
      const { announcement, told, replayed } = await write(() => begin(senderId, draft))
      walk.tell(told)
      return { announcement, replayed }
    },

    /** @throws not_found */
    get(idText: string): AnnouncementRow {
      const announcement = store.find(parseId(idText) ?? '')
      if (!announcement) throw new AppError('not_found')
      return announcement
    },

    job,
  }
}

function saysTheSame(draft: AnnouncementDraft, row: AnnouncementRow) {
  const essence = ({ audience, role, userIds, title, body, data }: AnnouncementDraft) =>
    JSON.stringify([audience, role, userIds, title, body, Object.entries(data).sort()])
  return essence(draft) === essence({ ...row, clientId: undefined })
}
