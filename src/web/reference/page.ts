import type { Documents, Frame, Operation, Reason, Schemas } from './documents.ts'
import { createFieldLists, type FieldLists, named } from './fields.ts'
import { type Entry, html, inline, jsonBlock } from './html.ts'
import { type Found, indexOf } from './index-of.ts'
import { introduction, socketEntry } from './introduction.ts'
import { operationEntry, reasonId } from './operation.ts'

type Group = { id: string; address: string; title: string; lead: string; entries: Entry[] }

export type Reference = {
  /** By address. */
  pages: Map<string, string>
  /** The address of the page that has an id. */
  homes: Map<string, string>
  index: Found[]
}

/** The reference, a page for each group.
 *  @param shell the page with its assets, and an empty element for the content
 *  @param text of docs/reasons.md */
export function referenceOf(shell: string, documents: Documents, text: string): Reference {
  const reasons = reasonsIn(text)
  const groups = groupsOf(documents, reasons)
  const sections = groups.map((group) => ({ group, markup: section(group).markup }))
  const homes = new Map(
    sections.flatMap(({ group, markup }) =>
      [...markup.matchAll(/ id="([^"]*)"/g)].map(([, id = '']) => [id, group.address] as const),
    ),
  )
  const pages = sections.map(({ group: { address, title }, markup }) => {
    const content = html`
<a class="skip visually-hidden" href="#main">Skip to the content</a>
${topBar(documents.api.info.version)}
<div class="reference">
${menu(groups, address)}
<main id="main" tabindex="-1" data-base="${documents.api.servers[0]?.url ?? ''}">${{ markup }}</main>
</div>
${loginDialog}`
    const linked = content.markup.replace(/ href="#([^"]*)"/g, (whole, id) => {
      const home = homes.get(id) ?? address
      return home === address ? whole : ` href="${home}#${id}"`
    })
    const page = shell
      .replace('<title>', `<title>${title} · `)
      .replace('<div id="app"></div>', () => linked)
    return [address, page] as const
  })
  return { pages: new Map(pages), homes, index: indexOf(groups, reasons) }
}

const topBar = (version: string) => html`<header class="top-bar row">
<button type="button" class="button ghost menu-button" aria-expanded="false" aria-controls="menu">Contents</button>
<a class="word-mark" href="/">Hostline</a>
<h1>API reference</h1>
<span class="badge number">${version}</span>
<select class="first-select" name="language" aria-label="Samples"><option value="curl">curl</option><option value="client">Client</option></select>
<select name="theme" aria-label="Theme"><option value="auto">Auto</option><option value="light">Light</option><option value="dark">Dark</option></select>
</header>`

/** The other groups show their titles only. */
const menu = (groups: Group[], address: string) => html`<div class="menu" id="menu">
<search><form class="search"><input type="search" aria-label="Search the reference" placeholder="Search" autocomplete="off"><kbd>/</kbd></form></search>
<p class="visually-hidden" role="status"></p>
<nav aria-label="Reference">${groups.map((group) => groupLinks(group, group.address === address))}</nav>
<nav class="found" aria-label="Found" hidden></nav>
</div>`

const groupLinks = ({ id, title, entries }: Group, isOpen: boolean) =>
  html`<div class="nav-group"><a href="#${id}">${title}</a>${isOpen && html`<ul>${entries.map((entry) => html`<li>${link(entry)}</li>`)}</ul>`}</div>`

const link = ({ id, title, mark }: Entry) =>
  html`<a href="#${id}"><span class="nav-title">${inline(title)}</span>${mark !== '' && html`<span class="nav-mark ${mark.toLowerCase()}">${mark}</span>`}</a>`

const section = ({ id, title, lead, entries }: Group) =>
  html`<section class="group">
<div class="group-head" id="${id}" data-part><h2 tabindex="-1">${title}</h2><p class="lead">${inline(lead)}</p></div>
${entries.map(part)}
</section>`

const part = ({ id, title, text, examples }: Entry) =>
  html`<article class="part" id="${id}" data-part><div class="part-text"><h3 tabindex="-1"><a class="title-link" href="#${id}">${inline(title)}</a></h3>${text}</div>${examples && html`<div class="part-examples">${examples}</div>`}</article>
`

function groupsOf({ api, channel }: Documents, reasons: Reason[]): Group[] {
  const schemas: Schemas = { ...channel.components.schemas, ...api.components.schemas }
  const lists = createFieldLists(schemas)
  const parts = { api, lists, reasonIds: new Set(reasons.map(({ id }) => id)) }
  const routes = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation,
    })),
  )
  const { title, description } = channel.channels.chat
  const groups = [
    {
      id: 'introduction',
      title: 'Introduction',
      lead: api.info.description,
      entries: introduction(api, reasons),
    },
    ...api.tags.map(({ name, description }) => ({
      id: name.toLowerCase(),
      title: name,
      lead: description,
      entries: routes
        .filter(({ operation }) => operation.tags[0] === name)
        .map((route) => operationEntry(route, parts)),
    })),
    {
      id: 'channel',
      title,
      lead: description,
      entries: [
        socketEntry(channel, lists),
        ...Object.entries(channel.components.messages).map(([id, frame]) =>
          frameEntry(id, frame, lists),
        ),
      ],
    },
    {
      id: 'webhooks',
      title: 'Webhooks',
      lead: 'The events that this service sends to the endpoints of the platform, signed with their secret (`whsec_…`) after the Standard Webhooks specification. An endpoint answers with any 2xx; everything else is tried again for days.',
      entries: Object.entries(api.webhooks).map(([event, { post }]) =>
        webhookEntry(event, post, lists),
      ),
    },
    {
      id: 'objects',
      title: 'Objects',
      lead: 'The objects that answers, frames and events share.',
      entries: objectEntries(lists),
    },
  ]
  return groups.map((group, index) => ({
    ...group,
    address: index === 0 ? '/docs' : `/docs/${group.id}`,
  }))
}

function frameEntry(
  id: string,
  { name, summary = '', payload, examples }: Frame,
  lists: FieldLists,
) {
  const isOwn = id.startsWith('client_')
  return {
    id,
    title: name,
    mark: isOwn ? 'SEND' : 'GET',
    text: html`<p class="small soft">WebSocket frame from the ${isOwn ? 'client' : 'server'}</p><p class="text">${inline(summary)}</p><h4>Fields</h4>${lists.fieldsOf(payload.schema, isOwn ? 'reader' : 'service')}`,
    examples: html`${examples.map((example) => jsonBlock(`Frame: ${name}`, example.payload))}`,
  }
}

function webhookEntry(event: string, operation: Operation, lists: FieldLists): Entry {
  const body = operation.requestBody?.content['application/json']
  const headers = (operation.parameters ?? []).map(
    ({ name, description = '' }): [string, string] => [name, description],
  )
  const answers = Object.entries(operation.responses)
  return {
    id: operation.operationId,
    title: event,
    mark: 'EVENT',
    text: html`<p class="endpoint"><span class="method post">POST</span> <code>your endpoint</code></p>
<h4>Body</h4>${body?.schema && lists.fieldsOf(body.schema, 'service')}
<h4>Headers</h4>${named(headers)}
<h4>What to answer</h4>${answers.map(([status, { description }]) => html`<p class="text"><code>${status}</code> ${description}</p>`)}`,
    examples: jsonBlock(`Event: ${event}`, body?.example),
  }
}

/** The shared objects, those included that only other objects have. */
function objectEntries(lists: FieldLists): Entry[] {
  let found = lists.objects()
  for (let known = 0; known < found.length; found = lists.objects()) known = found.length
  return found.map(({ name, description = '', fields }) => ({
    id: `object-${name}`,
    title: name,
    mark: '',
    text: html`<p class="text">${inline(description)}</p>${fields}`,
  }))
}

/** @param text of docs/reasons.md */
function reasonsIn(text: string): Reason[] {
  const rows = text.split('\n').filter((line) => /^\| \d/.test(line))
  return rows.map((row) => {
    const cells = row.split('|').slice(1, -1)
    const [status = '', code = '', reason = '', ...words] = cells.map((cell) =>
      cell.trim().replace(/^`(.*)`$/, '$1'),
    )
    const name = reason === '–' ? code : reason
    return { id: reasonId(status, name), status, name, cells: [code, ...words] }
  })
}

const loginDialog = html`<dialog aria-labelledby="login-title"><div class="stack">
<h2 id="login-title">Who sends the requests?</h2>
<form method="dialog" data-form="login">
<label class="field"><span class="label">E-mail address</span><input name="email" type="email" autocomplete="username" required></label>
<label class="field"><span class="label">Password</span><input name="password" type="password" autocomplete="current-password" required></label>
<label class="field" hidden><span class="label">Code</span><input name="code" autocomplete="one-time-code"></label>
<p class="error" role="alert"></p>
<button class="button primary">Log in</button>
</form>
<form method="dialog" data-form="token" class="token">
<label class="field"><span class="label">Or an access token or service key</span><input name="token" type="password" autocomplete="off" required></label>
<p class="small soft">It is forgotten with this tab.</p>
<button class="button">Use this token</button>
</form>
<div class="actions"><button type="button" class="button ghost" data-close>Cancel</button></div>
</div></dialog>`
