import { type Locale, texts } from '../../lib/i18n.ts'

type StartPage = { name: string; version: string; demo: boolean; locale: Locale }

/** @param html the page, with an empty `main` */
export function startPage(html: string, { name, version, demo, locale }: StartPage): string {
  const mark = '<span class="word-mark">'
  return html
    .replace('<html lang="en">', `<html lang="${locale}">`)
    .replace(mark, () => mark + Bun.escapeHTML(name))
    .replace(emptyScript, '')
    .replace('<!-- version -->', `<span class="badge number">${version}</span>`)
    .replace('<main></main>', `<main>${contents(demo, locale)}</main>`)
}

// The bundler adds one to a page without scripts.
const emptyScript = /<script type="module"[^>]*><\/script>/

function contents(demo: boolean, locale: Locale): string {
  const words = texts[locale].start
  const links = [
    ['/v1/openapi.json', 'OpenAPI', words.openapi],
    ['/v1/asyncapi.json', 'AsyncAPI', words.asyncapi],
    ['/client.js', 'client.js', words.client],
    ['/client.d.ts', 'client.d.ts', words.types],
    ['/hostline-client.tgz', 'hostline-client.tgz', words.package],
    ['/.well-known/jwks.json', 'jwks.json', words.keys],
    ['/healthz', 'healthz', words.health],
    ['/readyz', 'readyz', words.readiness],
  ]
  return `<h1>${words.title}</h1>
<p class="lead">${words.lead}</p>
<ul class="places">
${place('/console', words.console, words.consoleText)}
${place('/docs', words.docs, words.docsText)}
${demo ? place('/demo', words.demo, words.demoText) : ''}
</ul>
<h2>${words.programs}</h2>
<ul class="links">
${links.map(([path, title, text]) => `<li><a href="${path}">${title}</a><span class="soft">${text}</span></li>`).join('\n')}
</ul>
<h2>${words.firstAdmin}</h2>
<p>${words.firstAdminText}</p>
<pre class="command">hostline user create --email you@example.com --role admin</pre>
<p class="soft">${words.furtherAdmins}</p>`
}

const place = (path: string, title: string, text: string) =>
  `<li><a class="card" href="${path}"><strong>${title}</strong><span class="soft">${text}</span></a></li>`
