/** What is here, and how to begin. */
export function startPage(html: string, version: string, demo: boolean): string {
  return html.replace('<main></main>', `<main>${contents(version, demo)}</main>`)
}

const contents = (version: string, demo: boolean) => `<h1>Hostline</h1>
<p>Version ${version} is running.</p>
<ul>
<li><a href="/console">Console</a></li>
${demo ? '<li><a href="/demo">Demo</a></li>' : ''}
<li><a href="/docs">API reference</a></li>
<li><a href="/v1/openapi.json">API description (OpenAPI 3.1)</a>,
<a href="/v1/asyncapi.json">its WebSocket channel (AsyncAPI 3.0)</a></li>
<li><a href="/.well-known/jwks.json">Public keys (JWKS)</a></li>
<li><a href="/healthz">Health</a> and <a href="/readyz">readiness</a></li>
</ul>`
