import { effect, signal } from '@preact/signals'
import { Menu as MenuIcon, X } from 'lucide-preact'
import type { ComponentChildren } from 'preact'
import { useEffect, useMemo } from 'preact/hooks'
import { useResource } from '../ui/resource.ts'
import { showShortcuts, useShortcut } from '../ui/shortcuts.tsx'
import { Failure, Loading } from '../ui/states.tsx'
import { ThemeSelect } from '../ui/theme.tsx'
import { contentsOf, type Entry, type Group } from './contents.ts'
import { type Documents, loadDocuments } from './documents.ts'
import { written } from './introduction.tsx'
import { Inline } from './markdown.tsx'
import { FramePart, WebhookPart } from './message-parts.tsx'
import { Navigation } from './navigation.tsx'
import { OperationPart } from './operation-part.tsx'
import { Part } from './part.tsx'
import { current, startReading } from './reading.ts'
import './reference.css'

// A signal, so that opening the menu renders nothing else.
const isMenuOpen = signal(false)

/** The API reference, generated from the service's OpenAPI and AsyncAPI documents. */
export function ReferencePage() {
  const { data, error, reload } = useResource('documents', loadDocuments)
  const groups = useMemo(() => data && contentsOf(data, written), [data])
  useShortcut('?', 'Show the shortcuts', showShortcuts)
  const waiting = error ? <Failure error={error} retry={reload} /> : <Loading rows={12} />
  return (
    <div class="reference">
      <a class="skip visually-hidden" href="#main">
        Skip to the content
      </a>
      <TopBar version={data?.api.info.version} />
      <Menu>{groups && <Navigation groups={groups} onChosen={closeMenu} />}</Menu>
      <main id="main" tabIndex={-1}>
        {groups && data ? <Everything groups={groups} documents={data} /> : waiting}
      </main>
    </div>
  )
}

function closeMenu() {
  isMenuOpen.value = false
}

function Menu({ children }: { children: ComponentChildren }) {
  return (
    <div class={isMenuOpen.value ? 'menu open' : 'menu'} id="menu">
      {children}
    </div>
  )
}

function TopBar({ version }: { version: string | undefined }) {
  return (
    <header class="top-bar">
      <button
        type="button"
        class="button ghost icon menu-button"
        aria-label="Contents"
        aria-expanded={isMenuOpen.value}
        aria-controls="menu"
        onClick={() => {
          isMenuOpen.value = !isMenuOpen.value
        }}
      >
        {isMenuOpen.value ? <X /> : <MenuIcon />}
      </button>
      <a class="word-mark" href="/">
        Hostline
      </a>
      <h1>API reference</h1>
      {version && <span class="badge number">{version}</span>}
      <span class="theme">
        <ThemeSelect />
      </span>
    </header>
  )
}

type EverythingProps = { groups: Group[]; documents: Documents }

function Everything({ groups, documents }: EverythingProps) {
  useEffect(startReading, [])
  useEffect(() => nameDocument(groups), [groups])
  return groups.map((group) => (
    <div key={group.id} class="group">
      <GroupHead group={group} />
      {group.entries.map((entry) => (
        <EntryPart key={entry.id} entry={entry} documents={documents} />
      ))}
    </div>
  ))
}

/** Keeps the document title in step with the current section. */
function nameDocument(groups: Group[]): () => void {
  const parts = groups.flatMap((group) => [group, ...group.entries])
  return effect(() => {
    const part = parts.find(({ id }) => id === current.value)
    document.title = `${part?.title ?? 'Reference'} · Hostline API`
  })
}

function GroupHead({ group: { id, title, description } }: { group: Group }) {
  return (
    <div class="group-head" id={id} data-part>
      <h2 id={`${id}-title`} tabIndex={-1}>
        {title}
      </h2>
      <p class="lead">
        <Inline text={description} />
      </p>
    </div>
  )
}

function EntryPart({ entry, documents }: { entry: Entry; documents: Documents }) {
  if (entry.kind === 'operation') return <OperationPart entry={entry} api={documents.api} />
  if (entry.kind === 'webhook') return <WebhookPart entry={entry} documents={documents} />
  if (entry.kind === 'frame') return <FramePart entry={entry} documents={documents} />
  const { id, title, text: Text, examples: Examples } = entry
  return (
    <Part
      id={id}
      title={title}
      head={<Text documents={documents} />}
      text={() => null}
      {...(Examples && { examples: () => <Examples documents={documents} /> })}
    />
  )
}
