import { Megaphone, Plus, X } from 'lucide-preact'
import { useRef, useState } from 'preact/hooks'
import type {
  AnnouncementProgress,
  ManagedUser,
  NewAnnouncement,
} from '../../../../client/src/contract.ts'
import { ApiError } from '../../../../client/src/errors.ts'
import { uniqueId } from '../../../../client/src/platform.ts'
import { Button, IconButton, useAction } from '../../kit/button.tsx'
import { confirmAction } from '../../kit/dialog.tsx'
import { errorText, fieldProblems } from '../../kit/errors.ts'
import { Choices, SearchField, TextArea, TextField } from '../../kit/field.tsx'
import { moveFocus, useFocusOnProblem } from '../../kit/form.tsx'
import { count, plural } from '../../kit/format.ts'
import { RowList, Section } from '../../kit/list.tsx'
import { navigateFrom, path } from '../../kit/router.ts'
import { Select } from '../../kit/select.tsx'
import { Empty } from '../../kit/states.tsx'
import { fill, texts } from '../../kit/texts.tsx'
import { Time } from '../../kit/time.tsx'
import { toast } from '../../kit/toast.tsx'
import { mutate, type Query, totalOf, useList, useQuery } from '../data.ts'
import { selectedId } from '../panes.tsx'
import { roleOptions } from '../people/roles.ts'
import { request } from '../session.ts'
import { AnnouncementDetails, Preview } from './announcement.tsx'
import {
  type Addressee,
  announcementOf,
  audienceText,
  changeDraft,
  clearDraft,
  type Draft,
  draft,
} from './draft.ts'

const words = texts.console.announcements
const history = 'GET /v1/admin/notifications'
const page = '/console/announcements'

export function AnnouncementsPage() {
  const id = selectedId()
  if (id !== undefined) return <AnnouncementDetails key={id} id={id} />
  return (
    <div class="page announcements">
      <header class="row between wrap">
        <div>
          <h1>{texts.console.areas.announcements}</h1>
          <p>{words.about}</p>
        </div>
      </header>
      <AnnouncementForm />
      <History />
    </div>
  )
}

/** Writes a broadcast notification with a preview and the number of recipients, and sends it exactly once. */
function AnnouncementForm() {
  const { run, isBusy, error } = useAction(send)
  const problems = fieldProblems(error)
  const form = useRef<HTMLFormElement>(null)
  useFocusOnProblem(form, error)
  const { audience, people, title, body } = draft.value
  const counting = useQuery(
    'GET /v1/admin/users',
    audience === 'users' ? undefined : { query: recipientsQuery(draft.value) },
  )
  const recipients = audience === 'users' ? people.length : totalOf(counting.data)
  return (
    <form
      class="announcement"
      aria-label={words.new}
      ref={form}
      onSubmit={(event) => {
        event.preventDefault()
        run()
      }}
    >
      <div class="stack">
        <AudienceFields problem={problems['user_ids']} />
        <TextField
          label={texts.fields.title}
          problem={problems['title']}
          required
          maxLength={200}
          autocomplete="off"
          dir="auto"
          value={title}
          onInput={(event) => changeDraft({ title: event.currentTarget.value })}
        />
        <TextArea
          label={texts.fields.body}
          problem={problems['body']}
          required
          rows={6}
          maxLength={2_000}
          value={body}
          onInput={(event) => changeDraft({ body: event.currentTarget.value })}
        />
        <DataFields problems={problems} />
        <div class="row between wrap">
          <Recipients number={recipients} counting={counting} />
          <Button
            submits
            tone="primary"
            isBusy={isBusy}
            disabled={!recipients || !title.trim() || !body.trim()}
          >
            {words.send}
          </Button>
        </div>
      </div>
      <Preview title={title} body={body} />
    </form>
  )
}

type RecipientsProps = {
  number: number | undefined
  counting: Pick<Query<unknown>, 'error' | 'reload'>
}

function Recipients({ number, counting: { error, reload } }: RecipientsProps) {
  if (error !== undefined && number === undefined) {
    return (
      <span class="row small" role="alert">
        <span class="error">{errorText(error).text}</span>
        <Button tone="ghost" onClick={reload}>
          {words.countAgain}
        </Button>
      </span>
    )
  }
  return (
    <span class="small soft" role="status">
      {number === undefined && words.counting}
      {number === 0 && words.reachesNobody}
      {Boolean(number) && plural(words.reaches, number ?? 0)}
    </span>
  )
}

const recipientsQuery = ({ audience, role }: Draft) => ({
  disabled: false,
  per_page: 1,
  ...(audience === 'role' && { role }),
})

async function countRecipients(given: Draft): Promise<number> {
  if (given.audience === 'users') return given.people.length
  return totalOf(await request('GET /v1/admin/users', { query: recipientsQuery(given) })) ?? 0
}

async function send() {
  const given = draft.value
  const number = await countRecipients(given)
  if (path.peek() !== page) return
  const isSure = await confirmAction({
    title: plural(words.sendTitle, number),
    text: fill(words.sendText, { title: given.title.trim(), audience: audienceText(given) }),
    action: plural(words.sendAction, number),
  })
  if (!isSure) return
  const sent = await post(announcementOf(given))
  if (!sent || draft.value !== given) {
    changeDraft({ clientId: uniqueId() })
    toast(words.sentBefore)
    return
  }
  clearDraft()
  navigateFrom(page, `${page}/${sent.broadcast_id}`)
}

/** @returns undefined when an earlier attempt with this key has succeeded, but the draft was changed since then */
async function post(body: NewAnnouncement) {
  try {
    return await mutate('POST /v1/admin/notifications', { body }, { refreshes: [history] })
  } catch (error) {
    const isOther = error instanceof ApiError && error.reason === 'idempotency_mismatch'
    if (!isOther) throw error
    return undefined
  }
}

function AudienceFields({ problem }: { problem: string | undefined }) {
  const { audience, role } = draft.value
  const { all, role: ofRole, users } = words.audiences
  return (
    <>
      <Choices
        label={words.audience}
        isAcross
        name="audience"
        value={audience}
        options={[
          ['all', all],
          ['role', ofRole],
          ['users', users],
        ]}
        choose={(chosen) => changeDraft({ audience: chosen })}
      />
      {audience === 'role' && (
        <Select
          isField
          label={texts.fields.role}
          value={role}
          options={roleOptions}
          choose={(chosen) => changeDraft({ role: chosen })}
        />
      )}
      {audience === 'users' && <AddresseePicker problem={problem} />}
    </>
  )
}

const maxPeople = 1_000

function AddresseePicker({ problem }: { problem: string | undefined }) {
  const [q, setQ] = useState('')
  /** Enter picks the first result of this search once it is there. */
  const [wanted, setWanted] = useState<string>()
  const { people } = draft.value
  const found = useQuery(
    'GET /v1/admin/users',
    q === '' ? undefined : { query: { q, disabled: false, per_page: 6 } },
  )
  const picked = new Set(people.map(({ id }) => id))
  const others = found.data?.data.filter(({ id }) => !picked.has(id))
  const search = useRef<HTMLInputElement>(null)

  function change(next: Addressee[]) {
    changeDraft({ people: next })
    // The pressed button disappears with its row.
    moveFocus(search.current?.closest('fieldset'), search.current)
  }
  const add = ({ id, display_name: name }: ManagedUser) =>
    change([...people, { id, name }].slice(0, maxPeople))

  const [first] = others ?? []
  if (wanted === q && wanted !== '' && others) {
    setWanted(undefined)
    if (first) add(first)
  }

  return (
    <fieldset class="field picker">
      <legend class="label">{texts.console.areas.people}</legend>
      {people.length > 0 && (
        <ul class="row wrap" aria-label={words.picked}>
          {people.map(({ id, name }) => (
            <li key={id} class="badge">
              <span class="truncate">{name}</span>
              <IconButton
                icon={X}
                label={fill(words.leaveOut, { name })}
                onClick={() => change(people.filter((one) => one.id !== id))}
              />
            </li>
          ))}
        </ul>
      )}
      <SearchField
        of={search}
        label={words.searchPeople}
        placeholder={texts.console.people.searchHint}
        value={q}
        search={setQ}
        onEnter={setWanted}
      />
      {q !== '' && <Found people={others} error={found.error} onAdd={add} />}
      {problem && <span class="problem">{problem}</span>}
    </fieldset>
  )
}

type FoundProps = {
  people: ManagedUser[] | undefined
  error: unknown
  onAdd: (person: ManagedUser) => void
}

function Found({ people, error, onAdd }: FoundProps) {
  const state = people?.length === 0 ? words.nobodyElse : words.pick
  return (
    <>
      <span class="small soft" role="status">
        {error !== undefined ? errorText(error).text : people ? state : words.searching}
      </span>
      <ul class="picker-found">
        {people?.map((person) => (
          <li key={person.id}>
            <Button tone="ghost" onClick={() => onAdd(person)}>
              <span class="truncate">{person.display_name}</span>
              <span class="truncate soft">{person.email}</span>
            </Button>
          </li>
        ))}
      </ul>
    </>
  )
}

/** Key-value pairs for the app, such as a link. Folded, because few broadcasts need them. */
function DataFields({ problems }: { problems: Record<string, string> }) {
  const { data } = draft.value
  const addButton = useRef<HTMLButtonElement>(null)
  const wrong = Object.entries(problems).filter(([field]) => field.startsWith('data'))
  const change = (index: number, changes: Partial<(typeof data)[number]>) =>
    changeDraft({ data: data.map((pair, at) => (at === index ? { ...pair, ...changes } : pair)) })
  return (
    <details class="more" open={data.length > 0 || undefined}>
      <summary>{words.more}</summary>
      <div class="stack tight">
        <p class="small soft">{words.dataText}</p>
        {data.map(({ key, value }, index) => (
          <div class="row" key={index}>
            <input
              aria-label={fill(words.dataName, { number: index + 1 })}
              placeholder="link"
              maxLength={64}
              pattern="[A-Za-z_][A-Za-z0-9_.\-]*"
              title={words.dataNameRule}
              value={key}
              onInput={(event) => change(index, { key: event.currentTarget.value })}
            />
            <input
              aria-label={fill(words.dataValue, { number: index + 1 })}
              placeholder="https://example.com/hours"
              value={value}
              onInput={(event) => change(index, { value: event.currentTarget.value })}
            />
            <IconButton
              icon={X}
              label={fill(words.removeRow, { number: index + 1 })}
              onClick={() => {
                changeDraft({ data: data.filter((_, at) => at !== index) })
                addButton.current?.focus()
              }}
            />
          </div>
        ))}
        {wrong.map(([field, text]) => (
          <p class="error" key={field} tabIndex={-1}>
            {field.replace(/^data\./, '')}: {text}
          </p>
        ))}
        <Button
          icon={Plus}
          of={addButton}
          onClick={() => changeDraft({ data: [...data, { key: '', value: '' }] })}
        >
          {words.addRow}
        </Button>
      </div>
    </details>
  )
}

function History() {
  const list = useList(history, {}, { limit: 20 })
  return (
    <Section title={words.history} level={2}>
      <RowList
        label={words.history}
        list={list}
        empty={<Empty icon={Megaphone} {...words.none} />}
        render={(item) => <Sent item={item} />}
      />
    </Section>
  )
}

function Sent({ item }: { item: AnnouncementProgress }) {
  const { broadcast_id, title, sender, status, delivered_count, recipients_count } = item
  return (
    <>
      <div class="main">
        <h3 class="truncate" dir="auto">
          <a class="quiet" href={`/console/announcements/${broadcast_id}`}>
            {title}
          </a>
        </h3>
        <p class="soft small truncate">
          {fill(words.toBy, { audience: audienceText(item), name: sender.display_name })}
        </p>
      </div>
      <p class="soft small end">
        <Time at={item.created_at} />
        <span class="number">
          {fill(status === 'processing' ? words.some : words.delivered, {
            count: count(delivered_count),
            all: count(recipients_count),
          })}
        </span>
      </p>
    </>
  )
}
