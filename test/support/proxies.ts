import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeCertificate } from './certificate.ts'
import { freePort } from './process.ts'
import { tools } from './tools.ts'
import { waitFor } from './wait.ts'

/** Without openssl it has no certificate. */
export const nginx = tools.openssl && tools.nginx
export const caddy = tools.caddy

const root = join(import.meta.dir, '../..')
const readPage = (path: string) => readFileSync(join(root, path), 'utf8')

/** The first block of docs/operations.md in a language after these words. */
function documented(words: string, language: string): string {
  const [, section = ''] = readPage('docs/operations.md').split(words)
  const [, block] = new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 's').exec(section) ?? []
  if (block === undefined) throw new Error(`docs/operations.md has no ${language} after ${words}`)
  return block
}

/** @throws Error when the text has not what is replaced */
function replaceIn(text: string, replaced: Record<string, string>): string {
  return Object.entries(replaced).reduce((before, [from, to]) => {
    if (!before.includes(from)) throw new Error(`the documented block has no ${from}`)
    return before.replaceAll(from, to)
  }, text)
}

const pairHeading = '### A proxy in front of a pair\n'
const ofPair = ([one = '', other = '']: readonly string[]) => ({
  '10.0.0.1:3000': new URL(one).host,
  '10.0.0.2:3000': new URL(other).host,
})

/** nginx in front of one node or of a pair, as in docs/operations.md.
 *  @param bases of the nodes
 *  @param shortened times, for the lease of the nodes */
export async function startNginx(
  folder: string,
  bases: readonly string[],
  shortened: Record<string, string> = {},
) {
  const [port, tlsPort] = [await freePort(), await freePort()]
  mkdirSync(folder)
  const { cert, key } = await makeCertificate(folder)
  const listen = `listen 127.0.0.1:${port}; listen 127.0.0.1:${tlsPort} ssl; proxy_bind 127.0.0.9;`
  const [base = ''] = bases
  const block =
    bases.length > 1
      ? replaceIn(documented(pairHeading, 'nginx'), {
          ...ofPair(bases),
          'listen 443 ssl;': listen,
          '/etc/ssl/chat.example.com.pem': cert,
          '/etc/ssl/chat.example.com.key': key,
          ...shortened,
        })
      : `server { ${listen} ssl_certificate ${cert}; ssl_certificate_key ${key};
${replaceIn(documented('**Behind a proxy:**', 'nginx'), { '127.0.0.1:3000': new URL(base).host })} }`
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; user root; pid ${folder}/pid; error_log stderr; worker_processes 1;
events { worker_connections 512; }
http {
  access_log off;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/f;
  uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
${block}
}`,
  )
  const command = [nginx ?? '', '-p', folder, '-c', join(folder, 'nginx.conf')]
  return { ...(await start(command, port)), secureBase: `https://127.0.0.1:${tlsPort}` }
}

/** Caddy in front of one node, as in examples/Caddyfile, or of a pair, as in docs/operations.md.
 *  @param bases of the nodes */
export async function startCaddy(folder: string, bases: readonly string[]) {
  const port = await freePort()
  mkdirSync(folder)
  const [base = ''] = bases
  const site = `http://127.0.0.1:${port} {`
  const block =
    bases.length > 1
      ? replaceIn(documented(pairHeading, 'caddy'), {
          ...ofPair(bases),
          'chat.example.com {': site,
        })
      : replaceIn(readPage('examples/Caddyfile'), {
          '{$DOMAIN} {': site,
          'hostline:3000': new URL(base).host,
        })
  writeFileSync(join(folder, 'Caddyfile'), `{\n\tadmin off\n}\n${block}`)
  return await start([caddy ?? '', 'run', '--config', join(folder, 'Caddyfile')], port)
}

async function start(command: string[], port: number) {
  const child = Bun.spawn(command, { stdout: 'ignore', stderr: 'ignore' })
  const base = `http://127.0.0.1:${port}`
  const isReady = () => fetch(`${base}/readyz`).then(({ ok }) => ok)
  await waitFor(() => isReady().catch(() => false), command[0])
  return {
    base,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await child.exited
    },
  }
}
