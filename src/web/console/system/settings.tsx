import { signal } from '@preact/signals'
import type { Settings, SettingsUpdate } from '../../../../client/src/contract.ts'
import { Button } from '../../kit/button.tsx'
import { Problem, Problems, TextField } from '../../kit/field.tsx'
import { useFocusWhenLost, useForm } from '../../kit/form.tsx'
import { Loaded, Section } from '../../kit/list.tsx'
import { Select } from '../../kit/select.tsx'
import { Filled, fill, language, texts } from '../../kit/texts.tsx'
import { Time } from '../../kit/time.tsx'
import { toast } from '../../kit/toast.tsx'
import { ImageButton } from '../../kit/uploads.tsx'
import { mutate, patch, useQuery } from '../data.ts'
import { client, request, user } from '../session.ts'
import { MailPreview } from './mail-preview.tsx'

const words = texts.console.system.settings
const route = 'GET /v1/admin/settings'

// The texts of mails have a page of their own.
type Name = Exclude<keyof Settings, 'texts'>
type Value = Settings[Name] | null
/** Links have a field each. */
type FieldName = Exclude<Name, 'links'>
const groups: [keyof typeof words.groups, Name[]][] = [
  ['face', ['platform_name', 'logo_url', 'accent', 'app_url', 'support_email']],
  ['links', ['links']],
  ['messages', ['unread_mail_minutes', 'mail_content', 'push_content']],
  ['keeping', ['message_retention_days', 'ticket_retention_days']],
  ['access', ['registration']],
]
const names = groups.flatMap(([, names]) => names)
const choices: Partial<Record<Name, string[]>> = {
  mail_content: ['full', 'sender', 'none'],
  push_content: ['full', 'sender', 'none'],
  registration: ['open', 'off'],
}
const linkNames = ['home', 'conversation', 'ticket', 'notification'] as const

/** Changes that are not saved yet, with the values that they replace. Null is the default. */
type Draft = Partial<Record<Name, { value: Value; before: Value }>>

const isSame = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other)
/** Somebody else has changed it, to another value. */
const isStale = ({ value, before }: { value: Value; before: Value }, stored: Value) =>
  !isSame(before, stored) && !isSame(value, stored)
const namesIn = (draft: Draft) => names.filter((name) => name in draft)
const bodyOf = (draft: Draft): SettingsUpdate =>
  Object.fromEntries(namesIn(draft).map((name) => [name, draft[name]?.value]))

/** Kept while other pages are open. */
const unsaved = signal<Draft>({})
const setDraft = (draft: Draft) => {
  unsaved.value = draft
}
user.subscribe((signedIn) => signedIn || setDraft({}))

export function SettingsPage() {
  const stored = useQuery(route, {}, { every: 10 })
  const usual = useQuery('GET /v1/admin/settings/defaults', {})
  return (
    <Loaded from={usual}>
      {(defaults) => (
        <Loaded from={stored}>
          {(settings) => <SettingsForm settings={settings} defaults={defaults} />}
        </Loaded>
      )}
    </Loaded>
  )
}

function SettingsForm({ settings, defaults }: Record<'settings' | 'defaults', Settings>) {
  const draft = unsaved.value
  const form = useForm(async () => {
    const fresh = await request(route, {})
    patch(route, {}, () => fresh)
    // Somebody else has changed the same: the fields say so.
    if (namesIn(draft).some((name) => draft[name] && isStale(draft[name], fresh[name]))) return
    const refreshes = ['GET /v1/admin/retention' as const]
    const saved = await mutate('PATCH /v1/admin/settings', { body: bodyOf(draft) }, { refreshes })
    patch(route, {}, () => saved)
    // Fields that were changed meanwhile stay unsaved.
    const now = unsaved.peek()
    const left = namesIn(now).filter((name) => now[name] !== draft[name])
    setDraft(
      Object.fromEntries(
        left.map((name) => [
          name,
          { value: now[name]?.value, before: draft[name] ? saved[name] : now[name]?.before },
        ]),
      ),
    )
    toast(words.saved)
  })
  const isChanged = namesIn(draft).length > 0

  function change(name: Name, value: Value, before = draft[name]?.before ?? settings[name]) {
    // A logo may have been uploaded while other fields were changed.
    const { [name]: _, ...others } = unsaved.peek()
    // The value that is being saved will be the stored one.
    const isBack = !form.isBusy && isSame(value ?? defaults[name], settings[name])
    setDraft(isBack ? others : { ...others, [name]: { value, before } })
  }

  function discard() {
    setDraft({})
    focusSave() // the pressed button goes
  }

  return (
    <form
      class="settings"
      onSubmit={(event) => (isChanged ? form.onSubmit(event) : event.preventDefault())}
      noValidate
    >
      <Problems.Provider value={form.problems}>
        <div class="stack">
          {groups.map(([group, names]) => (
            <Section key={group} title={words.groups[group]} level={2} class="card">
              {names.map((name) => (
                <Setting
                  key={name}
                  name={name}
                  draft={draft}
                  settings={settings}
                  defaults={defaults}
                  change={change}
                />
              ))}
              {group === 'keeping' && <Due settings={settings} />}
            </Section>
          ))}
        </div>
        <aside class="stack">
          <Preview draft={draft} settings={settings} defaults={defaults} />
        </aside>
        <div class="save stack tight">
          <Problem text={form.problem} />
          <div class="row">
            <Button submits tone="primary" isBusy={!isChanged || form.isBusy}>
              {texts.kit.save}
            </Button>
            {isChanged && <Button onClick={discard}>{words.discard}</Button>}
          </div>
        </div>
      </Problems.Provider>
    </form>
  )
}

const focusSave = () => document.querySelector<HTMLElement>('.settings .save button')?.focus()

type SettingProps = {
  name: Name
  draft: Draft
  settings: Settings
  defaults: Settings
  change: (name: Name, value: Value, before?: Value) => void
}

function Setting(props: SettingProps) {
  const { name, draft, settings, change } = props
  const drafted = draft[name]
  function settle(...chosen: [value: Value, before?: Value]) {
    change(name, ...chosen)
    focusSave() // the pressed button goes
  }
  return (
    <>
      <Input {...props} />
      {drafted && isStale(drafted, settings[name]) && (
        <div class="notice warning row between wrap" role="alert">
          <span>{fill(words.meanwhile, { value: shownText(settings[name]) })}</span>
          <span class="row">
            <Button onClick={() => settle(settings[name])}>{words.takeTheirs}</Button>
            <Button onClick={() => settle(drafted.value, settings[name])}>{words.keepMine}</Button>
          </span>
        </div>
      )}
    </>
  )
}

const shownText = (value: Value) =>
  typeof value === 'string' || typeof value === 'number' ? value : JSON.stringify(value)

function Input({ name, draft, settings, defaults, change }: SettingProps) {
  const usual = defaults[name]
  const drafted = draft[name]
  const value = drafted ? (drafted.value ?? usual) : settings[name]
  if (name === 'links') {
    const links = typeof value === 'object' && value !== null ? value : {}
    return <Links links={links} change={(changed) => change(name, changed)} />
  }
  if (name === 'logo_url')
    return <Logo url={value === null ? null : String(value)} change={(url) => change(name, url)} />
  if (choices[name])
    return <Choice name={name} value={String(value)} choose={(chosen) => change(name, chosen)} />
  const set = (changed: Value) => change(name, changed)
  return <Text name={name} value={value} usual={usual} change={set} />
}

type TextProps = { name: FieldName; value: Value; usual: Value; change: (value: Value) => void }

function Text({ name, value, usual, change }: TextProps) {
  const { label, hint } = words.fields[name]
  const isColour = name === 'accent'
  const isNumber = typeof usual === 'number'
  const shown = isSame(value, usual) && !isColour ? '' : String(value ?? '')
  return (
    <TextField
      label={label}
      hint={usual === null ? hint : `${hint} ${fill(words.default, { value: String(usual) })}`}
      name={name}
      type={isColour ? 'color' : 'text'}
      value={shown}
      placeholder={String(usual ?? '')}
      spellcheck={false}
      {...(isNumber && { inputMode: 'numeric' as const })}
      onInput={({ currentTarget: { value: text } }) => change(parsed(text.trim(), isNumber))}
    />
  )
}

type ChoiceProps = { name: FieldName; value: string; choose: (value: string) => void }

function Choice({ name, value, choose }: ChoiceProps) {
  const { label, hint } = words.fields[name]
  const meanings: Record<string, string> = words.choices
  const options = (choices[name] ?? []).map(
    (option) => [option, meanings[option] ?? option] as const,
  )
  return (
    <>
      <Select isField label={label} value={value} options={options} choose={choose} />
      <p class="hint small soft">{hint}</p>
    </>
  )
}

function parsed(text: string, isNumber: boolean) {
  if (text === '') return null
  return isNumber && /^\d+$/.test(text) ? Number(text) : text
}

/** How much the saved settings for retention delete. */
function Due({ settings }: { settings: Settings }) {
  const { message_retention_days: messageDays, ticket_retention_days: ticketDays } = settings
  const isOn = messageDays + ticketDays > 0
  const plan = useQuery('GET /v1/admin/retention', isOn ? {} : undefined)
  if (!plan.data?.next_run_at) return null
  const { messages, tickets, next_run_at: at } = plan.data
  const values = { messages: messages.due, tickets: tickets.due, held: messages.held }
  return (
    <p class="notice">
      <Filled text={words.due} values={{ ...values, at: <Time at={at} /> }} />
    </p>
  )
}

type LinksProps = { links: Settings['links']; change: (links: Settings['links']) => void }

const Links = ({ links, change }: LinksProps) => (
  <>
    <p class="soft small">{words.linksHint}</p>
    {linkNames.map((name) => (
      <TextField
        key={name}
        label={words.links[name]}
        name={`links.${name}`}
        value={links[name] ?? ''}
        placeholder={
          name === 'home' ? 'https://app.example.com/' : `https://app.example.com/${name}/{id}`
        }
        spellcheck={false}
        onInput={({ currentTarget: { value } }) => {
          const { [name]: _, ...others } = links
          change(value.trim() === '' ? others : { ...others, [name]: value.trim() })
        }}
      />
    ))}
  </>
)

function Logo({ url, change }: { url: string | null; change: (url: string | null) => void }) {
  const { label, hint } = words.fields.logo_url
  const frame = useFocusWhenLost<HTMLDivElement>(url === null, 'button')
  return (
    <div class="field" ref={frame}>
      <span class="label">{label}</span>
      <div class="row wrap">
        {url && <img src={url} alt="" height="40" />}
        <ImageButton text={words.upload} send={client.files.upload} choose={change} />
        {url && <Button onClick={() => change(null)}>{words.noLogo}</Button>}
      </div>
      <span class="hint">{hint}</span>
    </div>
  )
}

type PreviewProps = Pick<SettingProps, 'draft' | 'settings' | 'defaults'>

/** The head of the account pages, and a mail. */
function Preview({ draft, settings, defaults }: PreviewProps) {
  const shown = { ...settings }
  for (const name of namesIn(draft))
    Object.assign(shown, { [name]: draft[name]?.value ?? defaults[name] })
  const { platform_name: name, logo_url: logo, app_url: url } = shown
  const body = bodyOf(draft)
  const changes = namesIn(draft).length > 0 ? { settings: body } : {}
  return (
    <>
      <Section title={words.accountPage} level={2} class="card">
        <p class="word-mark" dir="auto">
          {logo ? <img src={logo} alt={name} height="40" /> : name}
        </p>
        {url && <p>{fill(words.back, { platform: name })}</p>}
      </Section>
      <Section title={words.mail} level={2} class="card">
        <MailPreview mail={{ kind: 'verify_email', lang: language.value, ...changes }} />
      </Section>
    </>
  )
}
