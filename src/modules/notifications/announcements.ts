import type { Write } from '../../db/writer.ts'
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

/** People in one commit: the first share is served before the answer, the others by a job. */
const firstPart = 50
const part = 10
const pauseMilliseconds = 1
/** How long a job goes on before it lets others run. */
const shareMilliseconds = 1_000

/** What admins tell many (decisions 8). People are visited in the order of their ids, and how far it has come is kept in
 *  the commit that tells them: each hears it once, whenever the process dies. */
export function createAnnouncements(options: AnnouncementsOptions) {
  const { store, people, notifier, outbox, write, newId, clock } = options

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

  function nextPeople({ audience, role, userIds, lastUserId }: AnnouncementRow, limit: number) {
    if (audience !== 'users') return store.listPeople(role, lastUserId, limit)
    return (userIds ?? []).filter((id) => id > lastUserId).slice(0, limit)
  }

  /** For inside a `write`. */
  function deliverPart(announcement: AnnouncementRow, size: number) {
    const { id, title, body, data } = announcement
    const ids = nextPeople(announcement, size)
    const event = { type: 'broadcast', title, body, data: { ...data, broadcast_id: id } } as const
    const outcomes = ids.map((userId) => notifier.create(userId, event))
    const delivered = outcomes.filter(({ kind }) => kind === 'created').length
    const last = ids.at(-1)
    const reached = last === undefined ? announcement : store.updateProgress(id, delivered, last)
    const isComplete = ids.length < size
    return {
      outcomes,
      announcement: isComplete ? store.updateCompleted(id, clock.now()) : reached,
      isComplete,
    }
  }

  function begin(senderId: string, draft: AnnouncementDraft) {
    const { audience, title, body, data, clientId } = draft
    const first = clientId === undefined ? undefined : store.findByClientId(senderId, clientId)
    if (first && !saysTheSame(draft, first)) throw new AppError('conflict')
    if (first) return { announcement: first, outcomes: [], replayed: true }
    const row = store.insert({
      id: newId(),
      audience,
      ...audienceOf(draft),
      title,
      body,
      data,
      clientId,
      senderId,
      createdAt: clock.now(),
    })
    const { announcement, outcomes, isComplete } = deliverPart(row, firstPart)
    if (!isComplete) outbox.add('announcement', { announcement_id: row.id })
    return { announcement, outcomes, replayed: false }
  }

  const job: JobHandler<'announcement'> = async ({ announcement_id: id }, { isStopping }) => {
    const until = clock.now() + shareMilliseconds
    while (clock.now() < until && !isStopping()) {
      const { outcomes, isComplete } = await write(() => {
        const announcement = store.find(id)
        const isOver = !announcement || announcement.completedAt !== null
        return isOver ? { outcomes: [], isComplete: true } : deliverPart(announcement, part)
      })
      outcomes.forEach(notifier.tell)
      if (isComplete) return undefined
      await Bun.sleep(pauseMilliseconds)
    }
    return { againAfterMilliseconds: 0 }
  }

  return {
    /** Tells everybody in an audience; the same `clientId` with the same content gives the same announcement again.
     *  @throws validation_error (`user_ids`) · conflict (`clientId` was used for something else) */
    async send(senderId: string, draft: AnnouncementDraft) {
      const { announcement, outcomes, replayed } = await write(() => begin(senderId, draft))
      outcomes.forEach(notifier.tell)
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
  const { audience, title, body } = row
  return draft.audience === audience && draft.title === title && draft.body === body
}
