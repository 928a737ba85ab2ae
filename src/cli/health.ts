import { readConfig } from '../config.ts'
import { StartError } from '../lib/errors.ts'
import { refuseArguments, type Terminal } from './terminal.ts'

const timeoutMilliseconds = 5_000

/** `hostline health`: checks the health of the server on this machine; for containers.
 *  @throws StartError when it does not respond with 200 */
export async function health(args: string[], { environment, isInteractive, out }: Terminal) {
  refuseArguments(args)
  const { host, port, tls } = readConfig(environment, isInteractive)
  const url = `${tls ? 'https' : 'http'}://${addressOf(host)}:${port}/healthz`
  const { status } = await fetch(url, {
    proxy: false,
    redirect: 'manual',
    // The certificate is for the public host name.
    tls: { rejectUnauthorized: false },
    signal: AbortSignal.timeout(timeoutMilliseconds),
  }).catch((error: Error) => {
    throw new StartError(`no response from ${url}: ${error.message}`)
  })
  if (status !== 200) throw new StartError(`${url} responded with ${status}`)
  out(`ok: ${url}`)
}

function addressOf(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}
