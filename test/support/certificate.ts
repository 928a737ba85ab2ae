import { join } from 'node:path'
import { tools } from './tools.ts'

/** Makes a self-signed certificate. Its key is elliptic: an RSA key may take a second.
 *  @param folder gets the two files
 *  @returns their paths */
export async function makeCertificate(
  folder: string,
  { host = 'localhost', days = 1, name = 'tls' } = {},
) {
  const [key, cert] = [join(folder, `${name}.key`), join(folder, `${name}.cert`)]
  const child = Bun.spawn(
    [
      tools.openssl ?? '',
      ...'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'.split(' '),
      ...['-days', `${days}`, '-subj', `/CN=${host}`, '-addext', `subjectAltName=DNS:${host}`],
      ...['-keyout', key, '-out', cert],
    ],
    { stdout: 'ignore', stderr: 'pipe' },
  )
  const problem = await child.stderr.text()
  if ((await child.exited) !== 0) throw new Error(problem)
  return { key, cert }
}
