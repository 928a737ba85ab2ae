import type { ComponentType } from 'preact'
import type { Documents, Frame, Operation } from './documents.ts'
import { firstPart } from './reading.ts'

type Common = {
  /** Last segment of its URL. */
  id: string
  title: string
  /** Shown beside the title in the navigation: an HTTP method, or the sender of a frame. */
  mark: string
}
export type OperationEntry = Common & {
  kind: 'operation'
  method: string
  path: string
  operation: Operation
}
export type WebhookEntry = Common & { kind: 'webhook'; event: string; operation: Operation }
export type FrameEntry = Common & { kind: 'frame'; from: 'client' | 'server'; frame: Frame }
type Text = ComponentType<{ documents: Documents }>
export type TextEntry = Common & { kind: 'text'; text: Text; examples?: Text }
export type Entry = OperationEntry | WebhookEntry | FrameEntry | TextEntry

export type Group = { id: string; title: string; description: string; entries: Entry[] }

/** The parts that are written by hand; all others are generated from the descriptions. */
export type Written = { introduction: TextEntry[]; connecting: TextEntry }

/** All parts of the page in their order. */
export function contentsOf({ api, channel }: Documents, written: Written): Group[] {
  const operations = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) =>
      operationEntry(method.toUpperCase(), path, operation),
    ),
  )
  const groups = api.tags.map(({ name, description }) => ({
    id: name.toLowerCase(),
    title: name,
    description,
    entries: operations.filter(({ operation }) => operation.tags[0] === name),
  }))
  const { title, description } = channel.channels.chat
  return [
    {
      id: firstPart,
      title: 'Introduction',
      description: api.info.description,
      entries: written.introduction,
    },
    ...groups,
    {
      id: 'channel',
      title,
      description,
      entries: [written.connecting, ...frameEntries(channel.components.messages)],
    },
    {
      id: 'webhooks',
      title: 'Webhooks',
      description:
        'What this service sends to the endpoints that admins name, signed after the Standard Webhooks specification. An endpoint answers with any 2xx; everything else is tried again for days.',
      entries: Object.entries(api.webhooks).map(([event, { post }]) => webhookEntry(event, post)),
    },
  ]
}

function operationEntry(method: string, path: string, operation: Operation): OperationEntry {
  const { operationId: id, summary } = operation
  return { kind: 'operation', id, title: titleOf(summary), mark: method, method, path, operation }
}

function webhookEntry(event: string, operation: Operation): WebhookEntry {
  return {
    kind: 'webhook',
    id: operation.operationId,
    title: event,
    mark: 'EVENT',
    event,
    operation,
  }
}

function frameEntries(frames: Record<string, Frame>): FrameEntry[] {
  return Object.entries(frames).map(([id, frame]) => {
    const from = id.startsWith('client_') ? 'client' : 'server'
    const mark = from === 'client' ? 'SEND' : 'GET'
    return { kind: 'frame', id, title: frame.name, mark, from, frame }
  })
}

const titleOf = (summary: string) => summary.replace(/\.$/, '')

/** The entries that contain every word, by group. */
export function search(groups: Group[], text: string): Group[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return groups
  return groups
    .map((group) => ({
      ...group,
      entries: group.entries.filter((entry) => {
        const own = textOf(entry, group.title)
        return words.every((word) => own.includes(word))
      }),
    }))
    .filter(({ entries }) => entries.length > 0)
}

const texts = new WeakMap<Entry, string>()

function textOf(entry: Entry, group: string): string {
  const known = texts.get(entry)
  if (known !== undefined) return known
  const text = [group, entry.id, entry.title, entry.mark, ...more(entry)].join(' ').toLowerCase()
  texts.set(entry, text)
  return text
}

function more(entry: Entry): string[] {
  if (entry.kind === 'operation') return [entry.path, entry.operation.description ?? '']
  if (entry.kind === 'frame') return [entry.frame.summary ?? '', 'websocket frame']
  return []
}
