import { AppError } from '../lib/errors.ts'
import { ipGroup } from '../lib/ip-network.ts'
import type { Answered } from './observe-requests.ts'

/** The server, of which only this is used. */
type Connections = {
  /** Null once the answer was sent or the connection is gone. */
  requestIP(request: Request): unknown
}

export type OpenAnswers = ReturnType<typeof createOpenAnswers>

/** An unread answer holds up to 1 MiB. Browsers ask for six things at once, and an address may be that of a whole office. */
const maxPerClient = 64
const retryAfterSeconds = 5
const sweptEach = 1_024

/** Bounds how many answers to its GETs a client, known by its address, leaves unread; the idle timeout of the server ends
 *  those that nobody reads. Answers to other requests always go out: they tell what was done. */
export function createOpenAnswers(findServer: () => Connections | null | undefined) {
  const byClient = new Map<string, Request[]>()
  let added = 0

  function stillOpen(client: string): Request[] {
    const server = findServer()
    const open = byClient.get(client)?.filter((request) => server?.requestIP(request)) ?? []
    if (open.length > 0) byClient.set(client, open)
    else byClient.delete(client)
    return open
  }

  return {
    /** @throws rate_limited */
    mustHaveRoom(ip: string): void {
      const client = ipGroup(ip)
      const known = byClient.get(client)?.length ?? 0
      if (known < maxPerClient || stillOpen(client).length < maxPerClient) return
      throw new AppError('rate_limited', { retryAfterSeconds })
    },
    add({ request, context }: Answered): void {
      if (request.method !== 'GET' || !context) return
      const client = ipGroup(context.ip)
      const open = byClient.get(client)
      if (open) open.push(request)
      else byClient.set(client, [request])
      // Clients that do not come back are forgotten.
      if (++added % sweptEach === 0) for (const other of [...byClient.keys()]) stillOpen(other)
    },
  }
}
