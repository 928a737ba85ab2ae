import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeCertificate } from './certificate.ts'
import { freePort } from './process.ts'
import { tools } from './tools.ts'
import { waitFor } from './wait.ts'

/** Without openssl it has no certificate. */
export const nginx = tools.openssl && tools.nginx
export const caddy = tools.caddy

const addresses = ['10.0.0.1:3000', '10.0.0.2:3000']

/** A block of docs/operations.md after a heading, for these nodes. */
function documented(heading: string, language: string, bases: readonly string[]): string {
  const page = readFileSync(join(import.meta.dir, '../../docs/operations.md'), 'utf8')
  const [, section = ''] = page.split(`### ${heading}\n`)
  const [, block] = new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 's').exec(section) ?? []
  if (block === undefined) throw new Error(`docs/operations.md has no ${language} in ${heading}`)
  const hosts = bases.map((base) => new URL(base).host)
  return addresses.reduce((text, one, n) => text.replaceAll(one, hosts[n] ?? hosts[0] ?? ''), block)
}

/** nginx in front of nodes, as in docs/operations.md.
 *  @param bases of the nodes; the second may be missing
 *  @param replaced times that a test must shorten, as in the lease of its nodes */
export async function startNginx(
  folder: string,
  bases: readonly string[],
  replaced: Record<string, string> = {},
) {
  const [port, tlsPort] = [await freePort(), await freePort()]
  mkdirSync(folder)
  const { cert, key } = await makeCertificate(folder)
  const own = {
    'listen 443 ssl;': `listen 127.0.0.1:${port}; listen 127.0.0.1:${tlsPort} ssl; proxy_bind 127.0.0.9;`,
    '/etc/ssl/chat.example.com.pem': cert,
    '/etc/ssl/chat.example.com.key': key,
    ...replaced,
  }
  let block = documented('A proxy in front of a pair', 'nginx', bases)
  for (const [from, to] of Object.entries(own)) {
    if (!block.includes(from)) throw new Error(`docs/operations.md has no ${from}`)
    block = block.replaceAll(from, to)
  }
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; pid ${folder}/pid; error_log stderr; worker_processes 1;
events { worker_connections 64; }
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

/** Caddy in front of nodes, as in docs/operations.md. */
export async function startCaddy(folder: string, bases: readonly string[]) {
  const port = await freePort()
  mkdirSync(folder)
  const block = documented('A proxy in front of a pair', 'caddy', bases)
  const site = block.replace('chat.example.com {', `http://127.0.0.1:${port} {`)
  if (site === block) throw new Error('docs/operations.md has no chat.example.com')
  writeFileSync(join(folder, 'Caddyfile'), `{\n\tadmin off\n}\n${site}`)
  return await start([caddy ?? '', 'run', '--config', join(folder, 'Caddyfile')], port)
}

async function start(command: string[], port: number) {
  const child = Bun.spawn(command, { stdout: 'ignore', stderr: 'ignore' })
  const base = `http://127.0.0.1:${port}`
  await waitFor(() => fetch(base).catch(() => undefined), command[0])
  return {
    base,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await child.exited
    },
  }
}
