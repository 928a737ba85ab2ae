/** Markup; texts inside it are escaped. */
export type Html = { readonly markup: string }

/** A section of the page. */
export type Entry = {
  /** Its anchor. */
  id: string
  title: string
  /** Shown beside the title in the navigation: a method, or the sender of a frame. */
  mark: string
  text: Html
  examples?: Html | undefined
}

type Part = Html | string | number | false | undefined | readonly Part[]

/** Markup from a template. `false` and `undefined` insert nothing. */
export const html = (strings: TemplateStringsArray, ...parts: Part[]): Html => ({
  markup: String.raw({ raw: strings }, ...parts.map(markupOf)),
})

function markupOf(part: Part): string {
  if (part === undefined || part === false) return ''
  if (typeof part === 'string' || typeof part === 'number') return escaped(String(part))
  return 'markup' in part ? part.markup : part.map(markupOf).join('')
}

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
const escaped = (text: string) => text.replace(/[&<>"']/g, (sign) => entities[sign] ?? sign)

/** Text with code between backticks. */
export const inline = (text: string): Html =>
  html`${text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))}`

/** Paragraphs, separated by empty lines. */
export const paragraphs = (text: string): Html =>
  html`${text
    .split(/\n{2,}/)
    .filter(Boolean)
    .map((one) => html`<p class="text">${inline(one)}</p>`)}`

const tokens = /("(?:\\.|[^"\\])*")(\s*:)?|\b(?:true|false|null)\b|-?\b\d[\d.eE+-]*/g

/** JSON with different colours for names and values. */
export function colouredJson(text: string): Html {
  const parts: Part[] = []
  let end = 0
  for (const match of text.matchAll(tokens)) {
    const [whole, string, colon] = match
    parts.push(text.slice(end, match.index))
    end = match.index + whole.length
    const colour = string === undefined ? 'json-other' : 'json-text'
    parts.push(colon === undefined ? html`<span class="${colour}">${whole}</span>` : whole)
  }
  return html`${[...parts, text.slice(end)]}`
}

/** Code with a button that copies it. Only screen readers hear what follows the colon of the label. */
export const codeBlock = (label: string, code: Html): Html =>
  html`<figure class="code" aria-label="${label}"><figcaption class="row between">${label.split(':')[0]}${copyButton(label)}</figcaption>${code}</figure>`

const copyButton = (label: string) =>
  html`<button type="button" class="button ghost copy" aria-label="Copy: ${label}">Copy</button>`

export const jsonBlock = (label: string, value: unknown): Html =>
  codeBlock(label, html`<pre>${colouredJson(JSON.stringify(value, null, 2))}</pre>`)
