import { statSync } from 'node:fs'
import type { Core } from './core.ts'
import {
  type Certificate,
  ciphers,
  expiryWarning,
  readCertificate,
  type TlsFiles,
} from './http/certificate.ts'
import { isoTime } from './lib/clock.ts'
import { StartError } from './lib/errors.ts'

export const stopDeadlineMilliseconds = 10_000
/** Until then no machine of a pair serves. Downloads and uploads can be repeated on the next one. */
export const handOverDeadlineMilliseconds = 2_000
const stopPollMilliseconds = 5
const certificatePollMilliseconds = 10_000

type Server = Stoppable & Pick<Bun.Server<unknown>, 'port' | 'pendingWebSockets'>
type ServerOptions = {
  port: number
  hostname: string
  reusePort: false
  development: false
  tls?: Bun.TLSOptions
}
export type ListenParts = {
  open: (options: ServerOptions) => Server
  /** Called when the port is lost. */
  onFatal: (error: unknown) => void
}

/** Listens until `stop`. Reloads the certificate when its files change.
 *  @throws StartError with one line for the operator */
export function listen(
  { config, clock, log }: Pick<Core, 'config' | 'clock' | 'log'>,
  { open: openServer, onFatal }: ListenParts,
) {
  const { host, tls } = config
  let port = config.port
  let servers: Server[] = []
  let certificate: Certificate | undefined
  let loadedFingerprint = ''
  let reportedFailure: string | undefined
  let isStopped = false

  function open() {
    const pem = certificate && { cert: certificate.cert, key: certificate.key, ciphers }
    const common = { port, hostname: host, reusePort: false, development: false } as const
    try {
      const server = openServer({ ...common, ...(pem && { tls: pem }) })
      servers.push(server)
      port = server.port ?? port
    } catch (cause) {
      throw new StartError(`cannot listen on ${host}:${port}: ${advice(cause as Error, host)}`, {
        cause,
      })
    }
  }

  function load(files: TlsFiles) {
    const fingerprint = fingerprintOf(files)
    certificate = readCertificate(files)
    loadedFingerprint = fingerprint
    reportedFailure = undefined
    const warning = expiryWarning(certificate, clock.now())
    if (warning !== undefined) log.warn(warning)
  }

  // Bun cannot change the certificate of a server, so a new server replaces it. Open connections stay on the old server.
  function renew(files: TlsFiles) {
    try {
      load(files)
    } catch (error) {
      // Each poll tries again: a key may get its owner after its content.
      const { message } = error as Error
      if (message === reportedFailure) return
      reportedFailure = message
      log.error('the certificate could not be renewed, so the old one stays', { error })
      return
    }
    const former = servers.filter((it) => it.pendingWebSockets > 0 || it.pendingRequests > 0)
    for (const server of servers) void server.stop()
    servers = former
    try {
      open()
      log.info('the certificate was renewed', { until: certificate && isoTime(certificate.endsAt) })
    } catch (error) {
      onFatal(error)
    }
  }

  if (tls) load(tls)
  open()
  const stopWatching = tls
    ? clock.every(certificatePollMilliseconds, () => {
        if (fingerprintOf(tls) !== loadedFingerprint) renew(tls)
      })
    : () => {}

  return {
    port,
    reloadCertificate(): void {
      reportedFailure = undefined
      if (tls && !isStopped) renew(tls)
    },
    async stop(deadlineMilliseconds: number) {
      isStopped = true
      stopWatching()
      await stopServers(servers, deadlineMilliseconds)
    },
  }
}

type Stoppable = Pick<Bun.Server<unknown>, 'stop' | 'pendingRequests'>

export async function stopServers(
  servers: Stoppable[],
  deadlineMilliseconds: number,
): Promise<void> {
  // Its promise would wait for idle keep-alive connections too.
  for (const server of servers) void server.stop()
  const deadline = performance.now() + deadlineMilliseconds
  const isBusy = () => servers.some(({ pendingRequests }) => pendingRequests > 0)
  while (isBusy() && performance.now() < deadline) await Bun.sleep(stopPollMilliseconds)
  await Promise.all(servers.map((server) => server.stop(true)))
}

/** A fingerprint that changes with the files, also when a file is temporarily missing or out of reach. */
function fingerprintOf({ cert, key }: TlsFiles): string {
  try {
    return [cert, key]
      .map((path) => statSync(path))
      .map(({ mtimeMs, size, ino }) => `${mtimeMs} ${size} ${ino}`)
      .join()
  } catch {
    return ''
  }
}

// Bun reports the same error for a port in use and for an address of another machine.
function advice({ message, code }: Error & { code?: string }, host: string): string {
  if (!isOfThisMachine(host)) return 'set HOST to an address of this machine, or to 0.0.0.0 for all'
  if (code === 'EADDRINUSE') return 'the port is in use: stop the other program, or set PORT'
  if (code === 'EACCES')
    return 'this user may not use the port: set PORT above 1023 (or see docs/operations.md, TLS)'
  return message
}

function isOfThisMachine(host: string): boolean {
  try {
    const probe = Bun.serve({ hostname: host, port: 0, fetch: () => new Response() })
    void probe.stop(true)
    return true
  } catch {
    return false
  }
}
