import type { Person } from './dataset.ts'
import { type Operation, reading, type Sampling, walk } from './operation.ts'
import type { Caller, Request, Subject } from './subject.ts'
import { rareWord } from './support-fill.ts'
import { textOf, wordAt } from './vocabulary.ts'

const own = '/v1/support/tickets'
const desk = '/v1/admin/support/tickets'
const deskPageSize = 20
const touchedTickets = 100
let picked = 0
const text = textOf(60, (below) => (picked++ * 7_919) % below)

// Only lists of equal length can be compared. These words are frequent enough for a full page at every size, and for
// the two hundred rows that numbered pages count; rarer words are searched by cursor.
const inThreeOfFour = wordAt(10)
const inEveryOther = wordAt(20)
const inEverySeventh = wordAt(80)
const longInEverySeventh = wordAt(85)

/** The total of a view is counted along its index. */
const counting: Pick<Operation, 'excuse' | 'goal'> = {
  excuse: 'its tickets are counted',
  goal: [0.5, 20],
}

export const supportOperations: readonly Operation[] = [
  { name: 'own tickets, page 1', prepare: () => reading('ada', `${own}?page=1`) },
  {
    name: 'own tickets by cursor, halfway',
    async prepare(subject) {
      const { pagination } = await subject.read('ada', `${own}?page=1`)
      return reading('ada', await halfway(subject, 'ada', own, pagination.total ?? 0))
    },
  },
  {
    name: 'own ticket',
    async prepare(subject) {
      const { data } = await subject.read('dora', `${own}?page=1`)
      return reading('dora', `${own}/${data[0]?.id}`)
    },
  },
  queue(''),
  queue('status=open'),
  queue('priority=urgent'),
  queue('category=billing'),
  queue('assignee_id=me'),
  queue('assignee_id=none'),
  queue('status=open&category=billing'),
  queue('status=closed&assignee_id=me'),
  queue('status=open,in_progress,resolved&assignee_id=me'),
  queue('status=open,in_progress,resolved&assignee_id=none'),
  queue('waiting=true'),
  queue('waiting=false&status=open'),
  queue('waiting=true&assignee_id=me'),
  queue('order=shortest_waiting'),
  queue('waiting=true&order=shortest_waiting'),
  {
    name: 'counts of the queue',
    ...counting,
    prepare: () => reading('root', '/v1/admin/support/counts'),
  },
  {
    name: 'queue of one owner',
    ...counting,
    prepare: (subject) => reading('root', `${desk}?page=1&user_id=${subject.idOf('ada')}`),
  },
  {
    name: 'queue of one owner, status=open',
    ...counting,
    prepare: (subject) =>
      reading('root', `${desk}?page=1&status=open&user_id=${subject.idOf('ada')}`),
  },
  {
    name: 'queue by cursor, halfway',
    async prepare(subject) {
      const { pagination } = await subject.read('root', `${desk}?page=1`)
      return reading('root', await halfway(subject, 'root', desk, pagination.total ?? 0))
    },
  },
  {
    name: 'queue by number, halfway',
    excuse: 'deep pages are for the cursor form',
    async prepare(subject) {
      const { pagination } = await subject.read('root', `${desk}?page=1`)
      const page = Math.floor((pagination.total ?? 0) / deskPageSize / 2)
      return reading('root', `${desk}?page=${page}`)
    },
  },
  search('a rare word', `q=${rareWord.word}`),
  search('a word of every seventh', `q=${inEverySeventh}`),
  {
    ...search('a long word of every seventh', `q=${longInEverySeventh}`),
    excuse: 'the index keeps no beginnings of its length, so it gathers all that it finds',
  },
  search('a word of three of four', `q=${inThreeOfFour}`),
  search('two words', `q=${inThreeOfFour} ${inEveryOther}`),
  search('a beginning', `q=${inEverySeventh.slice(0, 3)}`),
  search('a word and status=open', `q=${inThreeOfFour}&status=open`),
  search('a word and an assignee', `q=${inThreeOfFour}&assignee_id=me`),
  search('a word and three statuses', `q=${inThreeOfFour}&status=open,in_progress,resolved`),
  search('a word and waiting=true', `q=${inThreeOfFour}&waiting=true`),
  search('a word and waiting=false', `q=${inThreeOfFour}&waiting=false`),
  search('a rarer word and status=open, by cursor', `q=${inEverySeventh}&status=open&limit=20`),
  search('a rarer word and an assignee, by cursor', `q=${inEverySeventh}&assignee_id=me&limit=20`),
  {
    name: 'change a ticket',
    prepare: (subject) =>
      touching(subject, (id, turn) => ({
        as: 'root',
        method: 'PATCH',
        path: `${desk}/${id}`,
        body: { priority: turn % 2 === 0 ? 'low' : 'high' },
        status: 200,
      })),
  },
  {
    name: 'answer as an admin',
    prepare: (subject) =>
      touching(subject, (id) => writing('root', `${desk}/${id}/messages`, { body: text })),
  },
  {
    name: 'answer as the owner',
    async prepare(subject) {
      const { data } = await subject.read('ada', `${own}?per_page=50`)
      return {
        request: (n) =>
          writing('ada', `${own}/${data[n % data.length]?.id}/messages`, { body: text }),
      }
    },
  },
  {
    name: 'open a ticket',
    prepare(subject) {
      let opened = 0
      let token = ''
      return {
        async before() {
          if (opened++ % ticketsPerDay === 0) token = await newcomer(subject, opened)
        },
        request: () => writing({ token }, own, { subject: 'Something is wrong', body: text }),
      }
    },
  },
]

/** A verified person may open this many. */
const ticketsPerDay = 20

/** @returns the access token of a new person */
async function newcomer(subject: Subject, n: number): Promise<string> {
  const external_id = `newcomer ${n}`
  const body = {
    external_id,
    email: `newcomer${n}@example.com`,
    email_verified: true,
    display_name: 'New',
  }
  const posted = { as: 'platform', method: 'POST', status: 201 } as const
  const { id } = JSON.parse(await subject.ask({ ...posted, path: '/v1/service/users', body }))
  const session = await subject.ask({ ...posted, path: `/v1/service/users/${id}/sessions` })
  return JSON.parse(session).access_token
}

function queue(filter: string): Operation {
  return {
    name: `queue, page 1 ${filter}`.trim(),
    ...counting,
    prepare: () => reading('root', `${desk}?page=1&${filter}`),
  }
}

function search(name: string, query: string): Operation {
  return {
    name: `search: ${name}`,
    prepare: () => reading('root', `${desk}?${query.replaceAll(' ', '+')}`),
  }
}

function writing(as: Caller, path: string, body: object): Request {
  return { as, method: 'POST', path, body, status: 201 }
}

/** Works on some tickets in turn; `turn` is 1 once each has been worked on. */
async function touching(
  subject: Subject,
  request: (id: string, turn: number) => Request,
): Promise<Sampling> {
  const path = await halfway(subject, 'root', desk, touchedTickets * 4)
  const { data } = await subject.read('root', path.replace('limit=20', `limit=${touchedTickets}`))
  let done = 0
  return {
    request() {
      const turn = Math.floor(done / data.length)
      return request(data[done++ % data.length]?.id ?? '', turn)
    },
  }
}

/** @returns the path of the page in the middle */
async function halfway(subject: Subject, as: Person, path: string, total: number) {
  const cursor = await walk(subject, as, path, Math.floor(total / 2))
  return `${path}?limit=20&cursor=${cursor}`
}
