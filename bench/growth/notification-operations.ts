import type { Person } from './dataset.ts'
import { type Operation, reading, walk } from './operation.ts'
import type { Request, Subject } from './subject.ts'

const list = '/v1/notifications'

export const notificationOperations: readonly Operation[] = [
  { name: 'notifications, page 1', prepare: () => reading('busy', `${list}?page=1`) },
  { name: 'notifications, page 10', prepare: () => reading('busy', `${list}?page=10`) },
  { name: 'notifications, the last page', prepare: () => reading('busy', `${list}?page=50`) },
  {
    name: 'notifications by cursor, halfway',
    async prepare(subject) {
      const cursor = await walk(subject, 'busy', list, 500)
      return reading('busy', `${list}?limit=20&cursor=${cursor}`)
    },
  },
  { name: 'unread notifications', prepare: () => reading('busy', `${list}?unread=true`) },
  { name: 'unread count', prepare: () => reading('busy', `${list}/unread-count`) },
  {
    name: 'mark one read',
    prepare(subject) {
      let id = ''
      return {
        async before() {
          const answer = await subject.ask(notifying(subject, 'ada'))
          id = (JSON.parse(answer) as { data: { id: string }[] }).data[0]?.id ?? ''
        },
        request: () => ({ as: 'ada', method: 'PUT', path: `${list}/${id}/read`, status: 204 }),
      }
    },
  },
  {
    name: 'mark a few read',
    prepare: (subject) => ({
      async before() {
        for (let n = 0; n < 3; n++) await subject.ask(notifying(subject, 'dora'))
      },
      request: () => ({ as: 'dora', method: 'PUT', path: `${list}/read-all`, status: 204 }),
    }),
  },
  {
    name: 'notify somebody',
    prepare: (subject) => ({ request: () => notifying(subject, 'bob') }),
  },
  {
    name: 'notify who has as many as anybody may have',
    prepare: (subject) => ({ request: () => notifying(subject, 'busy') }),
  },
]

function notifying(subject: Subject, person: Person): Request {
  const event = { user_id: subject.idOf(person), type: 'call_missed', body: 'Somebody called.' }
  return {
    as: 'platform',
    method: 'POST',
    path: '/v1/service/notifications',
    body: event,
    status: 201,
  }
}
