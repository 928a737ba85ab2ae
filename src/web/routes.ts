import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { routeBase } from '../http/exchange.ts'
import { operation } from '../http/operation.ts'
import { AppError } from '../lib/errors.ts'

const tag = 'Service'
const retryAfterSeconds = 1

const Health = Type.Object({ status: Type.String(), version: Type.String() }, { title: 'Health' })
const Readiness = Type.Object({ status: Type.String() }, { title: 'Readiness' })

type WebRoutesOptions = {
  version: string
  /** Whether requests are welcome: the database can be written and nobody is shutting down. */
  isReady: () => Promise<boolean>
}

/** The start page, and what watches a process asks for. */
export function webRoutes({ version, isReady }: WebRoutesOptions) {
  return new Elysia({ name: 'web' })
    .use(routeBase)
    .get(
      '/',
      ({ set }) => {
        set.headers['content-type'] = 'text/html; charset=utf-8'
        set.headers['content-security-policy'] =
          "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        set.headers['referrer-policy'] = 'no-referrer'
        return startPage(version)
      },
      {
        access: 'public',
        limit: 'none',
        detail: operation({ tag, summary: 'Start page (HTML)', success: { 200: null } }),
      },
    )
    .get('/healthz', () => ({ status: 'ok', version }), {
      access: 'public',
      limit: 'none',
      detail: operation({ tag, summary: 'Whether the process is up', success: { 200: Health } }),
    })
    .get(
      '/readyz',
      async () => {
        if (!(await isReady())) throw new AppError('unavailable', { retryAfterSeconds })
        return { status: 'ready' }
      },
      {
        access: 'public',
        limit: 'none',
        detail: operation({
          tag,
          summary: 'Whether requests are welcome: the database can be written',
          success: { 200: Readiness },
        }),
      },
    )
}

/** The API description itself, made once from the routes it is a part of. */
export function descriptionRoute(describe: () => Promise<object>) {
  let description: Promise<object> | undefined
  return new Elysia({ name: 'description' }).use(routeBase).get(
    '/v1/openapi.json',
    () => {
      description ??= describe()
      return description
    },
    {
      access: 'public',
      limit: 'default',
      detail: operation({
        tag,
        summary: 'This description (OpenAPI 3.1)',
        success: { 200: Type.Object({ openapi: Type.String() }, { additionalProperties: true }) },
      }),
    },
  )
}

function startPage(version: string) {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Hostline</title>
<style>
body { font: 1rem/1.6 system-ui, sans-serif; max-width: 40rem; margin: 4rem auto; padding: 0 1rem; color: #1c2330; background: #fff }
a { color: #1d4ed8 }
@media (prefers-color-scheme: dark) { body { color: #e6e9ef; background: #14181f } a { color: #93b4ff } }
</style>
<main>
<h1>Hostline</h1>
<p>Version ${version} is running.</p>
<ul>
<li><a href="/v1/openapi.json">API description (OpenAPI 3.1)</a></li>
<li><a href="/.well-known/jwks.json">Public keys (JWKS)</a></li>
<li><a href="/healthz">Health</a> and <a href="/readyz">readiness</a></li>
</ul>
</main>
</html>
`
}
