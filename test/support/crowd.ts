import { Database } from 'bun:sqlite'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { call, served } from './process.ts'
import { damageOf } from './recount.ts'
import { type Person, startService } from './service.ts'
import { TestSocket } from './socket.ts'
import { aWhile, waitFor } from './wait.ts'

type Answer = Awaited<ReturnType<typeof call>>
/** A request that is repeated until it is acknowledged with `status`. */
type Operation = {
  method: string
  path: string
  token: string
  body?: object
  headers?: Record<string, string>
  status: number
  keep?: (answer: Answer) => void
}
type Talk = { id: string; people: [Person, Person] }
/** An acknowledged row, with the time of the acknowledgement in ms since the epoch. */
type Acknowledged = { id: string; at: number }

const names = ['ada', 'bob', 'cleo', 'dan']
// A user keeps 1,000 notifications and opens 20 tickets a day: both must last for all rounds.
const paceMilliseconds = 20
const maxTickets = 15

/** People who use all features concurrently over many rounds, with a record of all writes acknowledged by servers on
 *  `dataDir`. */
export async function gatherCrowd(dataDir: string) {
  await using service = await startService()
  const { token: key } = await service.issueKey()
  const root = await service.registerAs('admin', 'root')
  const people = await Promise.all(names.map((name) => service.registerAs('verified_user', name)))
  const talks = await Promise.all(
    people.map(async (person, n): Promise<Talk> => {
      const other = people[(n + 1) % people.length] ?? root
      return { id: await service.openConversation(person, other), people: [person, other] }
    }),
  )
  await service.stop()
  cpSync(service.directory, dataDir, { recursive: true })

  /** Ids of messages, ticket replies and notifications, by their text. */
  const made = new Map<string, Acknowledged>()
  const readNotifications = new Map<string, Acknowledged>()
  /** The newest message covered by an acknowledged read position, by person and conversation. */
  const readUpTo = new Map<string, Acknowledged>()
  const unanswered = new Map<string, Operation>()
  const newestIn = new Map<string, string>()
  let unread: { id: string; token: string }[] = []
  let tickets: { id: string; owner: Person }[] = []
  const surprises: string[] = []
  let serial = 0
  let refused = 0

  function keepMessage(
    text: string,
    { id, conversation_id }: { id: string; conversation_id: string },
  ) {
    made.set(text, acknowledged(id))
    if (id > (newestIn.get(conversation_id) ?? '')) newestIn.set(conversation_id, id)
  }

  function message({ id }: Talk, { token }: Person): Operation {
    const body = `message ${++serial}`
    return {
      method: 'POST',
      path: `/v1/chat/conversations/${id}/messages`,
      token,
      body: { body, client_id: body },
      status: 201,
      keep: (answer) => keepMessage(body, answer.body),
    }
  }

  function ticketOf(person: Person): Operation {
    const own = tickets.filter(({ owner }) => owner === person)
    const text = `ticket ${++serial}`
    const request = { method: 'POST', token: person.token, status: 201 }
    const body = { body: text, client_id: text }
    const path = '/v1/support/tickets'
    if (own.length < maxTickets && serial % 8 === 0) {
      const keep = (answer: Answer) => {
        tickets.push({ id: answer.body.id, owner: person })
        made.set(text, acknowledged(answer.body.messages[0].id))
      }
      return { ...request, path, body: { ...body, subject: text }, keep }
    }
    const ticket = own[serial % own.length]
    if (!ticket) return { ...request, method: 'GET', path, status: 200 }
    const keep = (answer: Answer) => void made.set(text, acknowledged(answer.body.id))
    return { ...request, path: `${path}/${ticket.id}/messages`, body, keep }
  }

  function deskAnswer(): Operation {
    const text = `answer ${++serial}`
    const ticket = tickets[serial % tickets.length]
    const path = '/v1/admin/support/tickets'
    const request = { method: 'POST', token: root.token, status: 201 }
    if (!ticket) return { ...request, method: 'GET', path, status: 200 }
    const keep = (answer: Answer) => void made.set(text, acknowledged(answer.body.id))
    const body = { body: text, client_id: text }
    return { ...request, path: `${path}/${ticket.id}/messages`, body, keep }
  }

  function notification(): Operation {
    const text = `notification ${++serial}`
    const { id, token } = people[serial % people.length] ?? root
    return {
      method: 'POST',
      path: '/v1/service/notifications',
      token: key,
      body: { user_id: id, type: 'broadcast', body: text, dedupe_key: text },
      status: 201,
      keep({ body }) {
        made.set(text, acknowledged(body.data[0].id))
        unread.push({ id: body.data[0].id, token })
      },
    }
  }

  function readNotification(): Operation {
    const found = unread.shift()
    const path = '/v1/notifications'
    if (!found) return { method: 'GET', path, token: root.token, status: 200 }
    const { id, token } = found
    const keep = () => void readNotifications.set(id, acknowledged(id))
    return { method: 'PUT', path: `${path}/${id}/read`, token, status: 204, keep }
  }

  function readConversation({ id }: Talk, reader: Person): Operation {
    const newest = newestIn.get(id)
    return {
      method: 'PUT',
      path: `/v1/chat/conversations/${id}/read`,
      token: reader.token,
      status: 204,
      keep: () => newest && void readUpTo.set(`${reader.id} ${id}`, acknowledged(newest)),
    }
  }

  function look({ id }: Talk, { token }: Person): Operation {
    const paths = ['chat/conversations', `chat/conversations/${id}/messages`, 'notifications']
    const path = `/v1/${paths[++serial % paths.length]}`
    return { method: 'GET', path, token, status: 200 }
  }

  function refresh(person: Person): Operation {
    return {
      method: 'POST',
      path: '/v1/auth/refresh',
      token: person.token,
      body: { refresh_token: person.refreshToken },
      // A request refused while it waits may have been done; with the same key it returns the same response.
      headers: { 'x-idempotency-key': `refresh ${++serial}` },
      status: 200,
      keep({ body }) {
        person.token = body.access_token
        person.refreshToken = body.refresh_token
      },
    }
  }

  /** Completes a refresh that was in flight when the server died, unless that was long ago. */
  async function continueSession(at: string, person: Person) {
    const name = `refresh ${person.id}`
    const asked = unanswered.get(name)
    unanswered.delete(name)
    const operation = asked ?? refresh(person)
    const answer = await served(() => call(at, operation.method, operation.path, operation))
    if (answer.status === operation.status) operation.keep?.(answer)
    else if (asked) await logInAgain(at, person)
    else surprises.push(`${person.email} has lost the session`)
  }

  async function logInAgain(at: string, person: Person) {
    const ofOldSession = [...unanswered.values()].filter(({ token }) => token === person.token)
    Object.assign(person, await login(at, person))
    for (const operation of ofOldSession) operation.token = person.token
  }

  return {
    people,
    talks,
    /** The number of messages, replies and notifications. */
    acknowledged: () => made.size,
    refused: () => refused,

    /** Uses all features until `end`, or until the server is gone. First repeats the unanswered requests of the
     *  previous round, with the same keys. */
    useEverything(at: string) {
      let over = false

      async function repeat(name: string, next: () => Operation, pause = 0) {
        while (!over) {
          const operation = unanswered.get(name) ?? next()
          unanswered.set(name, operation)
          const answer = await call(at, operation.method, operation.path, operation).catch(
            () => undefined,
          )
          if (!answer) return
          await take(answer, name, operation)
          if (pause > 0) await aWhile(pause)
        }
      }

      async function take(answer: Answer, name: string, operation: Operation) {
        if (await isRefused(answer, operation)) return
        unanswered.delete(name)
        if (answer.status === operation.status) operation.keep?.(answer)
        else surprises.push(`${operation.method} ${operation.path}: ${answer.status}`)
      }

      async function isRefused({ status, headers }: Answer, { method, path }: Operation) {
        if (status !== 503) return false
        refused++
        if (method === 'GET') surprises.push(`${method} ${path}: 503`)
        if (!headers.has('retry-after')) surprises.push(`${path}: 503 without Retry-After`)
        await aWhile(paceMilliseconds)
        return true
      }

      async function talkBySocket({ id, people: [person] }: Talk) {
        const url = `${at.replace('http', 'ws')}/v1/chat/ws?events=ack&token=${person.token}`
        const socket = await TestSocket.open(url).catch(() => undefined)
        let isGone = !socket
        void socket?.closed.then(() => (isGone = true))
        while (socket && !over && !isGone) {
          const body = `frame ${++serial}`
          socket.send({ type: 'message', conversation_id: id, body, client_id: body })
          const answer = () => socket.frames.find(({ type }) => type === 'ack' || type === 'error')
          await waitFor(() => isGone || answer(), 'the answer to a frame')
          if (answer()?.type === 'ack') keepMessage(body, answer().message)
          socket.frames.length = 0
        }
        socket?.close()
      }

      const loops = talks.flatMap((talk) => {
        const [person, other] = talk.people
        const [own, others] = [`${talk.id} own`, `${talk.id} others`]
        return [
          repeat(`${own} message`, () => message(talk, person)),
          repeat(`${others} message`, () => message(talk, other)),
          repeat(`${own} read`, () => readConversation(talk, person), paceMilliseconds),
          repeat(`${others} read`, () => readConversation(talk, other), paceMilliseconds),
          repeat(`${own} ticket`, () => ticketOf(person), paceMilliseconds),
          repeat(`${own} look`, () => look(talk, person), paceMilliseconds),
          repeat(`refresh ${person.id}`, () => refresh(person), paceMilliseconds),
          talkBySocket(talk),
        ]
      })
      const finished = Promise.all([
        ...loops,
        repeat('desk', deskAnswer, paceMilliseconds),
        repeat('feed', notification, paceMilliseconds),
        repeat('notifications', readNotification, paceMilliseconds),
      ]).catch((error: unknown) => surprises.push(String(error)))
      return {
        async end() {
          over = true
          await finished
        },
      }
    },

    /** The differences between acknowledged writes and the data that `at` serves. */
    async complaints(at: string, dataDirectory: string): Promise<string[]> {
      await Promise.all(people.map((person) => continueSession(at, person)))
      using sqlite = openData(dataDirectory)
      const doubled = countDuplicates(sqlite)
      return [
        ...lostIn(sqlite).map(({ what }) => what),
        ...(doubled > 0 ? [`${doubled} doubled`] : []),
        ...damageOf(sqlite),
        ...surprises,
      ]
    },

    /** Drops acknowledged writes after `since` that `at` does not have, after the loss of a machine.
     *  @returns the times of the lost acknowledgements in ms since the epoch */
    async acceptLoss(at: string, dataDirectory: string, since: number): Promise<number[]> {
      using sqlite = openData(dataDirectory)
      const accepted = lostIn(sqlite).filter((lost) => lost.at > since)
      for (const { from, key } of accepted) from.delete(key)
      const kept = new Set(
        sqlite
          .query(
            'SELECT id FROM tickets UNION ALL SELECT id FROM notifications UNION ALL SELECT id FROM messages',
          )
          .values()
          .flat(),
      )
      tickets = tickets.filter(({ id }) => kept.has(id))
      unread = unread.filter(({ id }) => kept.has(id))
      for (const [talk, id] of newestIn) if (!kept.has(id)) newestIn.delete(talk)
      unanswered.clear()
      for (const person of people) await logInAgain(at, person)
      return accepted.map((lost) => lost.at)
    },
  }

  function lostIn(sqlite: Database) {
    const kept = new Map(writtenIn(sqlite).map(({ text, id }) => [text, id]))
    const read = new Set(
      sqlite.query('SELECT id FROM notifications WHERE read_at IS NOT NULL').values().flat(),
    )
    const isRead = sqlite.query<{ found: number }, [string, string, string]>(
      `SELECT last_read_seq >= (SELECT seq FROM messages WHERE id = ?3) AS found FROM participants
       WHERE user_id = ?1 AND conversation_id = ?2`,
    )
    const isForgotten = (place: string, newest: string) => {
      const [user = '', conversation = ''] = place.split(' ')
      return isRead.get(user, conversation, newest)?.found !== 1
    }
    return [
      ...missing(made, 'lost', (text, id) => kept.get(text) !== id),
      ...missing(readNotifications, 'unread again', (id) => !read.has(id)),
      ...missing(readUpTo, 'unread again', isForgotten),
    ]
  }
}

const openData = (directory: string) =>
  new Database(join(directory, 'hostline.db'), { readonly: true })

const writtenIn = (sqlite: Database) =>
  sqlite
    .query<{ text: string; id: string }, []>(
      `SELECT body AS text, id FROM messages UNION ALL SELECT body, id FROM ticket_messages
       UNION ALL SELECT body, id FROM notifications WHERE type = 'broadcast'`,
    )
    .all()

function countDuplicates(sqlite: Database) {
  const texts = writtenIn(sqlite).map(({ text }) => text)
  return texts.length - new Set(texts).size
}

function missing(
  from: Map<string, Acknowledged>,
  why: string,
  isMissing: (key: string, id: string) => boolean,
) {
  const found = [...from].filter(([key, { id }]) => isMissing(key, id))
  return found.map(([key, { at }]) => ({ what: `${why}: ${key}`, at, from, key }))
}

const acknowledged = (id: string): Acknowledged => ({ id, at: Date.now() })
async function login(base: string, { email }: Person) {
  const body = { email, password: 'correct horse' }
  const answer = await served(() => call(base, 'POST', '/v1/auth/login', { body }))
  const { access_token: token, refresh_token: refreshToken } = answer.body
  return { token, refreshToken }
}
