import { atScale, type Person } from './dataset.ts'
import { type Operation, reading, walk } from './operation.ts'
import type { Request, Subject } from './subject.ts'

const inbox = '/v1/chat/conversations'
const inboxPages = 400
const inboxPageSize = 20
const messagePages = 3_000
const messagePageSize = 50
const body = 'a message of the usual length, as people write them all day'

/** Where an operation goes deep, it goes as deep in proportion at every size. */
export const chatOperations: readonly Operation[] = [
  { name: 'inbox, page 1', prepare: () => reading('busy', `${inbox}?page=1`) },
  {
    name: 'inbox, page 400, paging on from 399',
    prepare(subject) {
      const page = inboxDepth(subject)
      const previous = `${inbox}?page=${page - 1}`
      return {
        before: () => subject.read('busy', previous),
        ...reading('busy', `${inbox}?page=${page}`),
      }
    },
  },
  {
    name: 'inbox, page 400, after the list changed',
    prepare: (subject) => ({
      before: (n) => sendAnywhere(subject, n),
      ...reading('busy', `${inbox}?page=${inboxDepth(subject)}`),
    }),
  },
  {
    name: 'inbox, any page, after the list changed',
    excuse: 'rows that nobody read lately: few of them are in the page cache of the larger ones',
    prepare: (subject) => ({
      before: (n) => sendAnywhere(subject, n),
      request(n) {
        const pages = subject.landmarks.busyConversations.length / inboxPageSize
        return reading('busy', `${inbox}?page=${1 + ((n * 7_907) % Math.floor(pages))}`).request()
      },
    }),
  },
  { name: 'inbox by cursor, first part', prepare: () => reading('busy', `${inbox}?limit=20`) },
  {
    name: 'inbox by cursor, as deep as page 400',
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
  {
    name: 'catching up, near the end',
    async prepare(subject) {
      const newest = await subject.read('ada', `${big(subject)}?limit=100`)
      return reading('ada', `/v1/chat/messages?limit=50&since=${newest.data.at(-1)?.id}`)
    },
  },
  {
    name: 'catching up, from far back',
    async prepare(subject) {
      const page = messageDepth(subject)
      const old = await subject.read('ada', `${big(subject)}?page=${page}`)
      return reading('ada', `/v1/chat/messages?limit=50&since=${old.data.at(-1)?.id}`)
    },
  },
  { name: 'send, big conversation', prepare: (subject) => sending(big(subject)) },
  {
    name: 'send, small conversation',
    prepare: ({ landmarks }) => sending(messagesOf(landmarks.smallConversation)),
  },
  {
    name: 'send, to the busy one',
    prepare: (subject) => ({
      request: () => message('ada', messagesOf(subject.landmarks.busyConversations[0] ?? '')),
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
const inboxDepth = ({ landmarks }: Subject) => Math.max(2, atScale(inboxPages, landmarks.scale))
const messageDepth = ({ landmarks }: Subject) => atScale(messagePages, landmarks.scale)

/** Moves one of the busy one's conversations, near or far, to the top of the list. */
function sendAnywhere(subject: Subject, n: number) {
  const { busyConversations } = subject.landmarks
  const id = busyConversations[(n * 7_919) % busyConversations.length] ?? ''
  return subject.ask(message('busy', messagesOf(id)))
}
