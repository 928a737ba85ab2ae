import type { ServerWebSocket } from 'bun'
import type { createRandom } from './random.ts'

type Random = ReturnType<typeof createRandom>

// biome-ignore lint/suspicious/noExplicitAny: frames and bodies are judged by the assertions on them
type Json = any
type Asked = { method: string; path: string; body: Json; token: string | null }
type Upgrade = { path: string; query: Record<string, string>; protocols: string }
type Direction = 'toServer' | 'toClient'
/** Replaces the service for one request; `forward` sends it after all. */
type Fault = (forward: () => Promise<Response>) => Response | Promise<Response>
/** Handles one frame: `forward` passes it on, and may be called late and repeatedly. */
type FrameFault = (forward: () => void, frame: Json) => void
type Tunnel = {
  upstream: WebSocket
  /** Messages to the client: a disturbed proxy delays them, but keeps their order as a connection does. */
  messages: Promise<void>
  /** Absent until the client's side is open; earlier frames of the service wait in `early`. */
  client?: ServerWebSocket<Tunnel>
  early: string[]
}

export type FaultProxy = ReturnType<typeof startFaultProxy>

/** A proxy in front of a service. It forwards requests, responses and frames, records the requests, and injects
 *  faults on demand.
 *  @param address of the service, which may change with each start */
export function startFaultProxy(address: string | (() => string)) {
  const service = () => (typeof address === 'string' ? address : address())
  const requests: Asked[] = []
  const upgrades: Upgrade[] = []
  const frames: Record<Direction, Json[]> = { toServer: [], toClient: [] }
  const faults: { path: string; fault: Fault }[] = []
  const frameFaults: { direction: Direction; type: string; fault: FrameFault }[] = []
  const tunnels = new Set<Tunnel>()
  const control = { isOffline: false, refusesUpgrades: false }
  let random: Random | undefined

  async function answer(request: Request): Promise<Response | undefined> {
    const url = new URL(request.url)
    const isUpgrade = request.headers.has('upgrade')
    const body = await request.arrayBuffer()
    if (isUpgrade) upgrades.push(upgradeOf(request, url))
    else requests.push(askedOf(request, url, body))
    if (control.isOffline) return networkError()
    if (isUpgrade && control.refusesUpgrades) return refusal(401, 'unauthorized')
    const fault = take(faults, ({ path }) => path === url.pathname)?.fault
    const send = () => forward(service(), request, body)
    if (fault) return fault(send)
    if (isUpgrade) return tunnel(request, url)
    return (random ? disturbRequest(random, send) : send()).catch(networkError)
  }

  async function tunnel(request: Request, url: URL): Promise<Response | undefined> {
    const upstream = openUpstream(
      service().replace('http', 'ws') + url.pathname + url.search,
      request,
    )
    const opened: Tunnel = { upstream, early: [], messages: Promise.resolve() }
    upstream.onmessage = ({ data }) => {
      if (opened.client) pass('toClient', opened, String(data))
      else opened.early.push(String(data))
    }
    const isOpen = await new Promise((resolve) => {
      upstream.onopen = () => resolve(true)
      upstream.onclose = () => resolve(false)
    })
    // A WebSocket client cannot see the status of a refusal, neither this one nor the test's.
    if (!isOpen) return new Response('the service refused the upgrade', { status: 502 })
    upstream.onclose = ({ code }) => end(opened, code)
    const headers = { 'sec-websocket-protocol': upstream.protocol }
    if (!server.upgrade(request, { data: opened, headers })) upstream.terminate()
    return undefined
  }

  function pass(direction: Direction, opened: Tunnel, text: string) {
    const { upstream, client } = opened
    const frame = JSON.parse(text)
    // Each connection begins with one.
    if (frame.type !== 'ready') frames[direction].push(frame)
    const forward = () => void (direction === 'toServer' ? upstream : client)?.send(text)
    if (random) return disturbFrame(random, opened, frame, forward)
    const found = take(frameFaults, (it) => it.direction === direction && it.type === frame.type)
    if (found) found.fault(forward, frame)
    else forward()
  }

  const server: Bun.Server<Tunnel> = Bun.serve<Tunnel>({
    port: 0,
    hostname: '127.0.0.1',
    fetch: answer,
    websocket: {
      open(socket) {
        socket.data.client = socket
        tunnels.add(socket.data)
        for (const text of socket.data.early) pass('toClient', socket.data, text)
      },
      message: (socket, text) => pass('toServer', socket.data, String(text)),
      close({ data }, code) {
        tunnels.delete(data)
        data.upstream.onclose = null
        // Clients may not send other codes.
        if (code === 1000) data.upstream.close(code)
        else data.upstream.terminate()
      },
    },
  })

  return {
    base: `http://127.0.0.1:${server.port}`,
    control,
    requests,
    upgrades,
    /** The frames of both directions, including those that a fault dropped. */
    frames,
    openSockets: () => tunnels.size,
    /** The number of requests for a route. */
    count: (method: string, path: string) =>
      requests.filter((it) => it.method === method && it.path === path).length,
    /** Sets a fault for the next request to a path. */
    onNext: (path: string, fault: Fault) => void faults.push({ path, fault }),
    /** Sets a fault for the next frame of a type. */
    onNextFrame: (direction: Direction, type: string, fault: FrameFault) =>
      void frameFaults.push({ direction, type, fault }),
    /** Sends a frame to all clients, as if the service had sent it. */
    push(frame: Json) {
      for (const { client } of tunnels) client?.send(JSON.stringify(frame))
    },
    /** From now on delays, duplicates and reorders requests and frames, and loses requests and responses. */
    disturb(by: Random | undefined) {
      random = by
    },
    /** Closes all sockets with a code; 1006 breaks the connections. */
    cut(code: number) {
      for (const opened of tunnels) end(opened, code)
    },
    async [Symbol.asyncDispose]() {
      for (const { upstream } of tunnels) upstream.onclose = null
      await server.stop(true)
    },
  }
}

const brokenCode = 1006
const longestDelay = 4

/** Delays, duplicates or drops a request, or drops its response. */
async function disturbRequest({ below }: Random, send: () => Promise<Response>): Promise<Response> {
  await Bun.sleep(below(longestDelay))
  if (below(20) === 0) return networkError()
  const first = await send()
  // Like a retrying proxy: it forwards the later response.
  const answer = below(10) === 0 ? await send() : first
  await Bun.sleep(below(longestDelay))
  return below(20) === 0 ? networkError() : answer
}

/** Delays, duplicates and reorders frames, except for messages to the client: a connection keeps their order. */
function disturbFrame({ below }: Random, opened: Tunnel, frame: Json, forward: () => void) {
  const forwardAll = () => {
    forward()
    if (below(10) === 0) forward()
  }
  const late = () => Bun.sleep(below(longestDelay))
  if (frame.type !== 'new_message') return void late().then(forwardAll)
  opened.messages = opened.messages.then(late).then(forwardAll)
}

function end({ client }: Tunnel, code: number) {
  if (code === brokenCode) client?.terminate()
  else client?.close(code)
}

function askedOf({ method, headers }: Request, { pathname }: URL, body: ArrayBuffer): Asked {
  const isJson = headers.get('content-type')?.startsWith('application/json') ?? false
  const asked = isJson ? JSON.parse(new TextDecoder().decode(body)) : undefined
  return { method, path: pathname, body: asked, token: headers.get('authorization') }
}

function upgradeOf({ headers }: Request, { pathname, searchParams }: URL): Upgrade {
  const protocols = headers.get('sec-websocket-protocol') ?? ''
  return { path: pathname, query: Object.fromEntries(searchParams), protocols }
}

async function forward(service: string, request: Request, body: ArrayBuffer): Promise<Response> {
  const { method, headers, url } = request
  const { pathname, search } = new URL(url)
  const options = { redirect: 'manual', decompress: false } as const
  const sent = body.byteLength > 0 ? { body } : {}
  const answer = await fetch(service + pathname + search, { method, headers, ...options, ...sent })
  return new Response(answer.body && (await answer.arrayBuffer()), answer)
}

function openUpstream(url: string, { headers }: Request): WebSocket {
  const isOwn = (name: string) => /^(connection|upgrade|sec-websocket-.*)$/.test(name)
  const protocols = headers.get('sec-websocket-protocol')?.split(/, ?/) ?? []
  const passed = Object.fromEntries([...headers].filter(([name]) => !isOwn(name)))
  return new WebSocket(url, { protocols, headers: passed })
}

function take<T>(list: T[], isWanted: (item: T) => boolean): T | undefined {
  const index = list.findIndex(isWanted)
  return index < 0 ? undefined : list.splice(index, 1)[0]
}

/** A response that breaks off: reading it throws. Without a first byte some runtimes would repeat the request by
 *  themselves. */
export function networkError() {
  let hasBegun = false
  return new Response(
    new ReadableStream({
      pull(controller) {
        if (hasBegun) controller.error()
        else controller.enqueue('{')
        hasBegun = true
      },
    }),
  )
}

/** Never responds. */
export const hang = () => new Promise<never>(() => {})

export function refusal(status: number, code: string, headers: Record<string, string> = {}) {
  return Response.json({ error: { code, message: code, details: null } }, { status, headers })
}
