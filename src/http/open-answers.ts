import { AppError } from '../lib/errors.ts'
import { ipGroup } from '../lib/ip-network.ts'
import type { Answered } from './observe-requests.ts'

type Connections = {
  /** Null once the response was sent or the connection closed. */
  requestIP(request: Request): unknown
}

export type OpenAnswers = ReturnType<typeof createOpenAnswers>

/** A page of the longest messages takes 2 MB. Browsers make six requests at once, and a whole office may share an address. */
const maxPerClient = 64
const retryAfterSeconds = 5
const sweptEach = 1_024

/** Bounds the unread responses to GETs for each client address; the server's idle timeout ends those that stay unread.
 *  Responses to other requests are always sent, because they report a change. */
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
    mustHaveRoom(ip: string): void {
      const client = ipGroup(ip)
      const known = byClient.get(client)?.length ?? 0
      if (known < maxPerClient || stillOpen(client).length < maxPerClient) return
      throw new AppError('rate_limited', { retryAfterSeconds })
    },
    add({ request, context }: Answered): void {
      if (request.method !== 'GET' || !context) return
      byClient.getOrInsertComputed(ipGroup(context.ip), () => []).push(request)
      if (++added % sweptEach === 0) for (const other of [...byClient.keys()]) stillOpen(other)
    },
  }
}
