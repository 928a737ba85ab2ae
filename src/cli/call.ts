import { join } from 'node:path'
import { type Config, type Environment, readConfig } from '../config.ts'
import { DirectoryInUse, mustExist } from '../db/open.ts'
import { isStorageFailure } from '../db/writer.ts'
import { asOperator, operatorHeader, socketFile } from '../http/command-socket.ts'
import { reasonHeader } from '../http/error-answer.ts'
import type { ErrorBody } from '../lib/error-body.ts'
import { StartError } from '../lib/errors.ts'
import { createLog, type Log } from '../lib/log.ts'
import { type Command, printList, Refusal, readJsonOption, type Terminal } from './terminal.ts'

/** `Answer` is the type of a successful response.
 *  @throws Refusal */
export type Call = <Answer = void>(method: string, path: string, body?: object) => Promise<Answer>

type Send = (request: Request) => Promise<Response>
type ServiceConnection = AsyncDisposable & { send: Send }

const startDeadlineMilliseconds = 30_000
const answerMilliseconds = 5_000

/** Lets a command call the service of the data directory: the running server over its socket, or else a service opened for
 *  this command, which runs no jobs.
 *  @throws StartError when there is no database, or another process holds the directory and does not respond */
export async function withService(terminal: Terminal, work: (call: Call) => Promise<void>) {
  const config = readConfig(terminal.environment, terminal.isInteractive)
  mustExist(config.dataDir)
  await using connection = await connect(config, terminal)
  await work(callThrough(connection.send, terminal))
}

/** Retries both ways, because a server that is starting or stopping holds the directory without responding. */
async function connect(config: Config, terminal: Terminal): Promise<ServiceConnection> {
  const unix = join(config.dataDir, socketFile)
  const overSocket: ServiceConnection = {
    // A snapshot can take longer than the five minutes of the runtime.
    send: (it) => fetch(it, { unix, timeout: false }).catch(hasStopped),
    async [Symbol.asyncDispose]() {},
  }
  const deadline = performance.now() + startDeadlineMilliseconds
  for (;;) {
    if (await isAnswering(overSocket)) return overSocket
    try {
      return await openHere(config, terminal)
    } catch (error) {
      if (!(error instanceof DirectoryInUse)) throw error
      if (performance.now() > deadline) {
        throw new StartError(`${error.message}, and does not answer`, { cause: error })
      }
    }
  }
}

function hasStopped(cause: unknown): never {
  throw new StartError('the server has stopped before it answered', { cause })
}

function isAnswering({ send }: ServiceConnection) {
  const signal = AbortSignal.timeout(answerMilliseconds)
  return send(new Request('http://localhost/healthz', { signal })).then(
    ({ ok }) => ok,
    () => false,
  )
}

async function openHere(config: Config, terminal: Terminal): Promise<ServiceConnection> {
  const { openService } = await import('../serve.ts')
  const printed = terminalLog(terminal)
  let failure: unknown
  // The database cannot be used: the command ends with the cause.
  const log: Log = {
    ...printed,
    error(message, fields) {
      if (isStorageFailure(fields?.['error'])) failure = fields?.['error']
      else printed.error(message, fields)
    },
  }
  if (config.replica) {
    const { openNode } = await import('../replication/node.ts')
    const { mustBeNewest } = await import('../replication/replication.ts')
    await mustBeNewest(openNode(config.dataDir, config.replica, log))
  }
  const onFatal = (error: unknown) => {
    throw error
  }
  const { app, close } = await openService(config, log, onFatal, { isForCommand: true })
  async function send(request: Request) {
    const answer = await app.handle(asOperator(request))
    if (answer.status >= 500 && failure !== undefined) throw failure
    return answer
  }
  return { send, [Symbol.asyncDispose]: close }
}

/** The runtime's `userInfo` knows USER alone, which cron does not set. A user of a container has no name. */
const callerOf = ({ SUDO_USER, USER, LOGNAME, USERNAME }: Environment): string =>
  SUDO_USER || USER || LOGNAME || USERNAME || `uid:${process.getuid?.()}`

function callThrough(send: Send, { environment }: Terminal): Call {
  const operator = callerOf(environment)
  return async <Answer>(method: string, path: string, body?: object) => {
    const headers = { 'content-type': 'application/json', [operatorHeader]: operator }
    const content = body && { body: JSON.stringify(body) }
    const request = new Request(`http://localhost${path}`, { method, headers, ...content })
    const answer = await send(request)
    const text = await answer.text()
    if (!answer.ok) {
      const { error }: ErrorBody = JSON.parse(text)
      const reason = answer.headers.get(reasonHeader) ?? error.code
      const cause =
        answer.status >= 500 ? ' The cause is in its log; `hostline check` may name it.' : ''
      throw new Refusal(error.message + cause, reason, error.details ?? {})
    }
    // The caller names the response type, which its module defines.
    return (text === '' ? undefined : JSON.parse(text)) as Answer
  }
}

/** @throws Refusal */
export async function listAll<Item>(call: Call, path: string): Promise<Item[]> {
  type Page = { data: Item[]; pagination: { cursor: string | null } }
  const first = `${path}${path.includes('?') ? '&' : '?'}limit=100`
  const items: Item[] = []
  for (let next: string | undefined = first; next; ) {
    const { data, pagination }: Page = await call('GET', next)
    items.push(...data)
    next = pagination.cursor === null ? undefined : `${first}&cursor=${pagination.cursor}`
  }
  return items
}

export const listing =
  <Item extends object>(path: string, ...names: (keyof Item & string)[]): Command =>
  (args, terminal) => {
    const isJson = readJsonOption(args)
    return withService(terminal, async (call) =>
      printList(terminal, names, await listAll<Item>(call, path), isJson),
    )
  }

export function terminalLog({ err }: Terminal) {
  const write = (line: string) => err(line.trimEnd())
  return createLog({ level: 'error', format: 'pretty', now: Date.now, write })
}
