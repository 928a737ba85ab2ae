import { atScale, type Person } from './dataset.ts'
import { type Operation, reading, walk } from './operation.ts'
import type { Request, Subject } from './subject.ts'

const inbox = '/v1/chat/conversations'
const inboxPages = 4_000
const inboxPageSize = 20
const messagePages = 3_000
const messagePageSize = 50
const body = 'a message of the usual length, as people write them all day'

const inboxDepth = ({ landmarks }: Subject) => Math.max(2, atScale(inboxPages, landmarks.scale))
const messageDepth = ({ landmarks }: Subject) => atScale(messagePages, landmarks.scale)

/** Page depth grows in proportion to the size of the database. */
export const chatOperations: readonly Operation[] = [
  { name: 'inbox, page 1', prepare: () => reading('busy', `${inbox}?page=1`) },
  deepPage('inbox, page 4,000', inboxDepth),
  deepPage('inbox, the last page', ({ landmarks }) =>
    Math.floor(landmarks.people.length / inboxPageSize),
  ),
  { name: 'inbox by cursor, first part', prepare: () => reading('busy', `${inbox}?limit=20`) },
  {
    name: 'inbox by cursor, as deep as page 4,000',
    async prepare(subject) {
      const cursor = await walk(subject, 'busy', inbox, (inboxDepth(subject) - 1) * inboxPageSize)
      return reading('busy', `${inbox}?limit=20&cursor=${cursor}`)
    },
  },
  { name: 'inbox with unread messages', prepare: () => reading('cleo', `${inbox}?page=1`) },
  {
    name: 'unread count of one conversation',
    prepare: (subject) => ({
      request: () => ({
        as: 'cleo',
        method: 'POST',
        path: inbox,
        body: { user_id: subject.landmarks.people[10] },
        status: 201,
      }),
    }),
  },
  { name: 'messages, page 1', prepare: (subject) => reading('ada', `${big(subject)}?page=1`) },
  {
    name: 'messages, page 3,000',
    prepare: (subject) => reading('ada', `${big(subject)}?page=${messageDepth(subject)}`),
  },
  {
    name: 'messages by cursor, first part',
    prepare: (subject) => reading('ada', `${big(subject)}?limit=50`),
  },
  {
    name: 'messages by cursor, as deep as page 3,000',
    async prepare(subject) {
      const rows = (messageDepth(subject) - 1) * messagePageSize
      const cursor = await walk(subject, 'ada', big(subject), rows)
      return reading('ada', `${big(subject)}?limit=50&cursor=${cursor}`)
    },
  },
  ...[1, 100, 5_000].map(catchingUp),
  { name: 'send, big conversation', prepare: (subject) => sending(big(subject)) },
  {
    name: 'send, small conversation',
    prepare: ({ landmarks }) => sending(messagesOf(landmarks.smallConversation)),
  },
  {
    name: 'send, to the busy one',
    prepare: (subject) => ({
      request: () => message('ada', messagesOf(subject.landmarks.busyConversation)),
    }),
  },
  {
    name: 'mark read, big conversation',
    prepare: (subject) => ({
      before: () => subject.ask(message('bob', big(subject))),
      request: () => ({
        as: 'ada',
        method: 'PUT',
        path: `${inbox}/${subject.landmarks.bigConversation}/read`,
        status: 204,
      }),
    }),
  },
]

function sending(path: string) {
  return { request: () => message('ada', path) }
}

function message(as: Person, path: string): Request {
  return { as, method: 'POST', path, body: { body }, status: 201 }
}

const messagesOf = (conversationId: string) => `${inbox}/${conversationId}/messages`
const big = ({ landmarks }: Subject) => messagesOf(landmarks.bigConversation)

/** The page number at the largest size of 100,000 conversations; in proportion at smaller sizes. */
function deepPage(name: string, pageOf: (subject: Subject) => number): Operation {
  return {
    name,
    excuse: 'pages by number walk along an index',
    goal: [0.5, 10],
    prepare: (subject) => reading('busy', `${inbox}?page=${pageOf(subject)}`),
  }
}

/** The same number of missed messages at every size. */
function catchingUp(missed: number): Operation {
  return {
    name: `catching up after ${missed.toLocaleString('en')} missed`,
    prepare({ landmarks }) {
      const since = landmarks.newestToCleo.at(-1 - missed)
      return reading('cleo', `/v1/chat/messages?limit=50&since=${since}`)
    },
  }
}
