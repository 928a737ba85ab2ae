import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryDirectory } from './directory.ts'
import { executable } from './executable.ts'
import { type ReplicaNode, startNode } from './nodes.ts'
import { startObjectStore } from './object-store.ts'
import { allMessages, call, freePort, type meet } from './process.ts'
import { aWhile, waitFor } from './wait.ts'

export type People = Awaited<ReturnType<typeof meet>>
type Start = { args?: string[]; environment?: Record<string, string>; path?: string }

/** A bucket, and nodes by name, each with a directory and a port that it keeps across starts. A lease is two seconds by
 *  default. */
export async function startPair(common: Record<string, string> = {}) {
  const [store, folder] = [await startObjectStore(), temporaryDirectory()]
  const ports = new Map<string, Promise<number>>()
  const started: ReplicaNode[] = []
  const directory = (name: string) => join(folder.path, name)

  function portOf(name: string) {
    const port = ports.get(name) ?? freePort()
    ports.set(name, port)
    return port
  }

  async function start(name: string, { args = [], environment = {}, path }: Start = {}) {
    const node = await startNode({
      dataDir: directory(name),
      bucket: store.url,
      args,
      path,
      port: await portOf(name),
      environment: { REPLICA_PAIR: 'true', REPLICA_LEASE: '2', ...common, ...environment },
    })
    started.push(node)
    return node
  }

  return {
    store,
    directory,
    portOf,
    start,

    /** A node that serves a new database of its own. */
    async leader(name: string, options: Start = {}) {
      cpSync((await executable()).emptyData, directory(name), { recursive: true })
      const node = await start(name, options)
      await node.ready()
      return node
    },

    /** A node that follows. */
    async standby(name: string, options: Start = {}) {
      const node = await start(name, { args: ['standby'], ...options })
      await node.says('follows the log')
      return node
    },

    async [Symbol.asyncDispose]() {
      for (const node of started) await node[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
      folder[Symbol.dispose]()
    },
  }
}

export type Pair = Awaited<ReturnType<typeof startPair>>

/** Sends a message once.
 *  @returns the status of the response, 0 without one */
export async function say(base: string, { a, conversationId }: People, body: string) {
  const path = `/v1/chat/conversations/${conversationId}/messages`
  const message = { token: a.token, body: { body, client_id: body } }
  return await call(base, 'POST', path, message).then(
    ({ status }) => status,
    () => 0,
  )
}

/** Sends a message until it is stored: a busy leader with a short lease refuses it for moments. */
export const saySurely = (base: string, people: People, body: string) =>
  waitFor(async () => (await say(base, people, body)) === 201, `“${body}” to be stored`)

/** The messages of the conversation there, oldest first. */
export async function texts(base: string, { a, conversationId }: People) {
  const found = await allMessages(base, conversationId, a.token)
  return found.map(({ body }) => body).reverse()
}

/** Sends new messages until `end`, some in parallel, each to the node that accepts it. Refused and unanswered ones
 *  are sent again.
 *  @param bases of the nodes; after a refusal the next one is tried */
export function sendContinuously(bases: readonly string[], people: People) {
  const acknowledged: string[] = []
  let sent = 0
  let refused = 0
  let isOver = false

  async function sayOnAndOn() {
    for (let current = 0; !isOver; ) {
      const text = `on and on ${++sent}`
      while ((await say(bases[current % bases.length] ?? '', people, text)) !== 201) {
        refused++
        current++
        await aWhile(20)
      }
      acknowledged.push(text)
    }
  }

  const saying = Promise.all([1, 2, 3].map(sayOnAndOn))
  return {
    acknowledged,
    refused: () => refused,
    /** Resolves when all messages are acknowledged. */
    async end() {
      isOver = true
      await saying
    },
  }
}
