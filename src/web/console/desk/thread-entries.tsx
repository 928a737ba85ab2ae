import { Lock } from 'lucide-preact'
import type { ComponentChildren } from 'preact'
import { Avatar } from '../../ui/avatar.tsx'
import { FileLink } from '../../ui/file-link.tsx'
import { absoluteTime, clockTime, locale, now } from '../../ui/format.ts'
import { user } from '../session.ts'
import { admins } from './admins.ts'
import { type Change, changeText, type Entry, type Message, type Note } from './timeline.ts'

/** Timeline entries with a separator for each day. */
export function Days({ entries }: { entries: Entry[] }) {
  const days = new Map<string, Entry[]>()
  for (const entry of entries) {
    const day = new Date(entry.at).toDateString()
    days.set(day, [...(days.get(day) ?? []), entry])
  }
  return [...days].map(([day, ofDay]) => (
    <section class="day" key={day} aria-label={dayText(day)}>
      <h3 class="day-name small soft">{dayText(day)}</h3>
      {ofDay.map((entry) => (
        <EntryView key={entry.id} entry={entry} />
      ))}
    </section>
  ))
}

function EntryView({ entry }: { entry: Entry }) {
  if (entry.kind === 'message') return <MessageView message={entry.message} />
  return entry.kind === 'note' ? (
    <NoteView note={entry.note} />
  ) : (
    <ChangeView change={entry.change} />
  )
}

function MessageView({ message }: { message: Message }) {
  const { author, body, created_at, is_admin, attachments = [] } = message
  return (
    <article class={`message ${is_admin ? 'from-desk' : ''}`}>
      <Avatar name={author.display_name} />
      <div class="bubble">
        <Meta at={created_at}>
          <strong>{author.display_name}</strong>
          {is_admin && <span class="visually-hidden">, for the desk</span>}
        </Meta>
        <p class="prose" dir="auto">
          {body}
        </p>
        {attachments.length > 0 && (
          <div class="files">
            {attachments.map((file) => (
              <FileLink key={file.id} file={file} />
            ))}
          </div>
        )}
      </div>
    </article>
  )
}

function NoteView({ note: { author, body, created_at } }: { note: Note }) {
  return (
    <article class="note">
      <Meta at={created_at}>
        <Lock />
        <strong>{author.display_name}</strong>
        <span>Internal note · only admins see this</span>
      </Meta>
      <p class="prose" dir="auto">
        {body}
      </p>
    </article>
  )
}

function ChangeView({ change }: { change: Change }) {
  return (
    <p class="change small soft">
      {changeText(change, nameOf)} · <Clock at={change.at} />
    </p>
  )
}

function Meta({ at, children }: { at: string; children: ComponentChildren }) {
  return (
    <p class="meta small">
      {children}
      <Clock at={at} />
    </p>
  )
}

function Clock({ at }: { at: string }) {
  return (
    <time class="soft" dateTime={at} title={absoluteTime(at)}>
      {clockTime(at)}
    </time>
  )
}

function nameOf(id: string): string {
  if (id === user.value?.id) return user.value.display_name
  return admins.value.find((admin) => admin.id === id)?.display_name ?? 'somebody'
}

function dayText(day: string): string {
  const date = new Date(day)
  const daysAgo = Math.round((startOfDay(now.value) - date.getTime()) / 86_400_000)
  if (daysAgo < 2) {
    const text = new Intl.RelativeTimeFormat(locale.value, { numeric: 'auto' }).format(
      -daysAgo,
      'day',
    )
    return text.charAt(0).toUpperCase() + text.slice(1)
  }
  const isThisYear = date.getFullYear() === new Date(now.value).getFullYear()
  return new Intl.DateTimeFormat(locale.value, {
    weekday: 'long',
    day: 'numeric',
    month: 'long',
    ...(!isThisYear && { year: 'numeric' }),
  }).format(date)
}

const startOfDay = (at: number) => new Date(at).setHours(0, 0, 0, 0)
