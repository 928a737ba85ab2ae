import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import type { Clock } from '../../src/lib/clock.ts'
import { hostline } from './command.ts'
import { memoryFolder, temporaryDirectory } from './directory.ts'
import { startObjectStore } from './object-store.ts'
import { type Person, startService, type TestService } from './service.ts'
import { waitFor } from './wait.ts'

type Options = {
  environment?: Record<string, string>
  /** The URL of the bucket, by default that of the store. */
  bucket?: string
  clock?: Clock
}
export type People = { a: Person; b: Person; conversationId: string }

/** A bucket, and services of this process that are replicated to it, each on a named directory. */
export async function replicas() {
  const store = await startObjectStore()
  const folder = temporaryDirectory(memoryFolder())
  const running: TestService[] = []
  let restores = 0
  const directory = (name: string) => join(folder.path, name)
  const environmentOf = ({ environment, bucket = store.url }: Options) => ({
    REPLICA_S3_URL: bucket,
    ...environment,
  })

  /** Runs `hostline restore s3` on a directory. */
  const restore = (name: string, args: string[] = [], options: Options = {}) =>
    hostline(['restore', 's3', ...args], directory(name), { environment: environmentOf(options) })

  /** Runs `hostline replica snapshot` beside the server of a directory. */
  const snapshot = (name: string, options: Options = {}) =>
    hostline(['replica', 'snapshot'], directory(name), { environment: environmentOf(options) })

  /** Restores into an empty directory. */
  async function restored(args: string[] = [], options: Options = {}) {
    const name = `restored-${++restores}`
    return { ...(await restore(name, args, options)), name, path: directory(name) }
  }

  /** Resolves when a restored directory passes the check. */
  async function shows(isRight: (path: string) => boolean) {
    let entries = 0
    async function look() {
      const count = store.keys('log/').length
      if (count === entries) return false
      entries = count
      const { exitCode, path } = await restored()
      return exitCode === 0 && isRight(path)
    }
    await waitFor(look, 'the bucket to have it')
  }

  return {
    store,
    directory,
    environmentOf,
    restore,
    snapshot,

    async start(name: string, options: Options = {}) {
      const environment = environmentOf(options)
      const { clock } = options
      const service = await startService({
        dataDir: directory(name),
        listen: true,
        environment,
        ...(clock && { clock }),
      })
      running.push(service)
      // Until then a busy machine may refuse writes.
      const isReady = async () => (await service.call('GET', '/readyz')).status === 200
      await waitFor(isReady, 'the service to be ready')
      return service
    },
    shows,
    /** Resolves when a restore gives these messages. */
    has: (texts: readonly string[]) => shows((path) => Bun.deepEquals(messagesIn(path), texts)),
    /** Resolves when the bucket has the database, and the log continues from it. */
    hasBegun: () => waitFor(() => store.keys('log/').length > 1, 'the log'),
    restored,
    /** The messages after a restore into an empty directory, oldest first; else the output of the command. */
    messages: async (args: string[] = [], options: Options = {}) => {
      const { exitCode, err, path } = await restored(args, options)
      return exitCode === 0 && err === '' ? messagesIn(path) : err
    },

    async [Symbol.asyncDispose]() {
      store.faults.away = false
      await Promise.all(running.map((service) => service.stop()))
      await store[Symbol.asyncDispose]()
      folder[Symbol.dispose]()
    },
  }
}

/** The first column of a query in the database of a directory, to which a server may write, too. */
export function find(directory: string, query: string): unknown[] {
  using sqlite = new Database(join(directory, 'hostline.db'))
  sqlite.run('PRAGMA busy_timeout = 5000')
  return sqlite.query(query).values().flat()
}

/** The texts in the database of a directory, oldest first. */
export const messagesIn = (directory: string) =>
  find(directory, 'SELECT body FROM messages ORDER BY id')

/** Sends a message with its text as `client_id`. */
export function say(service: TestService, { a, conversationId }: People, text: string) {
  const path = `/v1/chat/conversations/${conversationId}/messages`
  return service.call('POST', path, { token: a.token, body: { body: text, client_id: text } })
}

/** Sends a message until it is stored: on a busy machine the bucket may answer too late. */
export const saySurely = (service: TestService, people: People, text: string) =>
  waitFor(async () => (await say(service, people, text)).status === 201, `“${text}” to be stored`)
