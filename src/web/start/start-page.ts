/** @param html the page, with an empty `main` */
export function startPage(html: string, version: string, demo: boolean): string {
  return html
    .replace(emptyScript, '')
    .replace('<!-- version -->', `<span class="badge number">${version}</span>`)
    .replace('<main></main>', `<main>${contents(demo)}</main>`)
}

// The bundler adds one to a page without scripts.
const emptyScript = /<script[^>]*><\/script>/

const contents = (
  demo: boolean,
) => `<h1>Messages, accounts, support and notifications, in one service</h1>
<p class="lead">For platforms on which hosts and their clients meet. It is running: this page says what is here.</p>
<ul class="places">
${place('/console', 'Console', 'For admins: tickets, reports, people, announcements, and how the service is doing.')}
${place('/docs', 'API reference', 'Every operation, frame and event, with examples to copy and to send.')}
${demo ? place('/demo', 'Demo', 'A small app for two people, to see how messages travel.') : ''}
</ul>
<h2>For programs</h2>
<ul class="links">
${links.map(({ path, title, text }) => `<li><a href="${path}">${title}</a><span class="soft">${text}</span></li>`).join('\n')}
</ul>
<h2>The first admin</h2>
<p>A server without an admin prints a link when it starts. It is good for 30 minutes, and whoever opens it makes the first admin. On the server itself the command line does the same at any time:</p>
<pre class="command">hostline user create --email you@example.com --role admin</pre>
<p class="soft">Every further admin is made in the console, or by the same command.</p>`

const place = (path: string, title: string, text: string) =>
  `<li><a href="${path}"><strong>${title}</strong><span class="soft">${text}</span></a></li>`

const links = [
  { path: '/v1/openapi.json', title: 'OpenAPI', text: 'The REST operations, OpenAPI 3.1' },
  { path: '/v1/asyncapi.json', title: 'AsyncAPI', text: 'The WebSocket channel, AsyncAPI 3.0' },
  { path: '/client.js', title: 'client.js', text: 'The client for pages without a build step' },
  { path: '/client.d.ts', title: 'client.d.ts', text: 'Its types' },
  { path: '/.well-known/jwks.json', title: 'Keys', text: 'The public keys of access tokens, JWKS' },
  { path: '/healthz', title: 'Health', text: 'Whether the process is up' },
  { path: '/readyz', title: 'Readiness', text: 'Whether it takes requests' },
]
