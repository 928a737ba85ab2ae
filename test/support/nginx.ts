import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from './process.ts'
import { tools } from './tools.ts'
import { waitFor } from './wait.ts'

/** Without openssl it has no certificate. */
export const nginx = tools.openssl && tools.nginx

/** A real nginx in front of nodes, configured as in docs/operations.md.
 *  @param bases of the nodes
 *  @param more for its server: directives for several nodes */
export async function startNginx(folder: string, bases: readonly string[], more = '') {
  const [port, tlsPort] = [await freePort(), await freePort()]
  const servers = bases
    .map((base) => `server ${new URL(base).host} max_fails=1 fail_timeout=1s;`)
    .join(' ')
  mkdirSync(folder)
  const request =
    '-x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -keyout key.pem -out cert.pem'
  Bun.spawnSync(['openssl', 'req', ...request.split(' ')], { cwd: folder })
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; pid ${folder}/pid; error_log stderr; worker_processes 1;
events { worker_connections 64; }
http {
  access_log off;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/f;
  uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  upstream reads { ${servers} }
  upstream writes { ${servers} }
  map $request_method $nodes { default writes; GET reads; HEAD reads; }
  server {
    listen 127.0.0.1:${port};
    listen 127.0.0.1:${tlsPort} ssl;
    ssl_certificate ${folder}/cert.pem;
    ssl_certificate_key ${folder}/key.pem;
    proxy_bind 127.0.0.9;
    proxy_http_version 1.1;
    proxy_set_header Host $host;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection $http_connection;
    ${more}
    location / { proxy_pass http://$nodes; }
    location = /v1/chat/ws { proxy_pass http://$nodes; proxy_read_timeout 1h; }
  }
}`,
  )
  const child = Bun.spawn([nginx ?? '', '-p', folder, '-c', join(folder, 'nginx.conf')], {
    stdout: 'ignore',
    stderr: 'ignore',
  })
  const base = `http://127.0.0.1:${port}`
  await waitFor(() => fetch(base).catch(() => undefined), 'nginx')
  return {
    base,
    secureBase: `https://127.0.0.1:${tlsPort}`,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await child.exited
    },
  }
}
