import type { Reason } from './documents.ts'
import type { Entry } from './html.ts'

/** A section as the search finds it: first by its name, then by its sentences, then by everything in it. */
export type Found = {
  id: string
  address: string
  title: string
  mark: string
  group: string
  texts: [name: string, sentences: string, everything: string]
}
type Group = { address: string; title: string; entries: Entry[] }

/** The search index of all pages, in lower case. */
export function indexOf(groups: Group[], reasons: Reason[]): Found[] {
  const sections = groups.flatMap(({ address, title: group, entries }) =>
    entries.map((entry) => ({ ...found(entry, group), address, group })),
  )
  const address = groups[0]?.address ?? ''
  const rows = reasons.map(({ id, name, cells }): Found => {
    const all = `${id} ${name} ${cells.join(' ')}`.toLowerCase()
    const names = `${id} ${name}`.toLowerCase()
    return { id, address, title: name, mark: '', group: 'Reasons', texts: [names, all, all] }
  })
  return [...sections, ...rows]
}

function found({ id, title, mark, text: { markup }, examples }: Entry, group: string) {
  const [endpoint = ''] = /<p class="endpoint">.*?<\/p>/s.exec(markup) ?? []
  const sentences = markup.match(/<p class="text">.*?<\/p>|<ul class="facts.*?<\/ul>/gs) ?? []
  // Without the host, whose port may look like a status.
  const name = plain(`${group} ${id} ${title} ${mark} ${endpoint}`).replace(/\w+:\/\/[^ /]+/, '')
  return {
    id,
    title: title.replaceAll('`', ''),
    mark,
    texts: [
      name,
      `${name} ${plain(sentences.join(' '))}`,
      plain(markup + (examples?.markup ?? '')),
    ],
  } satisfies Partial<Found>
}

const signs: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }

const plain = (markup: string) =>
  markup
    .replace(/<wbr>/g, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/&(#?\w+);/g, (whole, name) => signs[name] ?? whole)
    .replace(/\s+/g, ' ')
    .toLowerCase()
