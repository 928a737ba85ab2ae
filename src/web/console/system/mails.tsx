import { signal } from '@preact/signals'
import type { Answer } from '../../../../client/src/contract.ts'
import { Button } from '../../kit/button.tsx'
import { Problem, Problems, TextArea, TextField } from '../../kit/field.tsx'
import { useFocusWhenLost, useForm } from '../../kit/form.tsx'
import { Loaded } from '../../kit/list.tsx'
import { query, setQuery } from '../../kit/router.ts'
import { Select } from '../../kit/select.tsx'
import { fill, type Language, language, languages, texts } from '../../kit/texts.tsx'
import { toast } from '../../kit/toast.tsx'
import { mutate, patch, useQuery } from '../data.ts'
import { request, user } from '../session.ts'
import { MailPreview } from './mail-preview.tsx'

const words = texts.console.system.mails
const { edit, editOne } = texts.console.system
const route = 'GET /v1/admin/settings'

type Kind = Answer<'GET /v1/admin/settings/texts'>['kinds'][number]
type Own = { subject?: string | null; body?: string | null }

/** Every mail in a language, in HTML and as plain text, with the texts of the platform. */
export function Mails() {
  const kinds = useQuery('GET /v1/admin/settings/texts', {})
  const settings = useQuery(route, {}, { every: 10 })
  const wanted = query.value.get('lang')
  const lang = languages.find(([name]) => name === wanted)?.[0] ?? language.value
  return (
    <>
      <div class="row between wrap">
        <p class="soft">{words.about}</p>
        <Select
          label={texts.fields.lang}
          value={lang}
          options={languages}
          choose={(chosen) => setQuery({ lang: chosen })}
        />
      </div>
      <Loaded from={settings}>
        {({ texts: stored }) => (
          <Loaded from={kinds}>
            {({ kinds }) => (
              <ul class="mails">
                {kinds.map((kind) => (
                  <Mail
                    key={`${kind.kind} ${lang}`}
                    kind={kind}
                    lang={lang}
                    own={stored[kind.kind]?.[lang] ?? {}}
                  />
                ))}
              </ul>
            )}
          </Loaded>
        )}
      </Loaded>
    </>
  )
}

type Draft = { text: Own; before: Own }
/** Each save writes the texts of all mails, so one waits for the other. */
let saving: Promise<void> = Promise.resolve()
/** Texts that are not saved yet, by kind and language, kept while other pages are open. */
const unsaved = signal<Record<string, Draft>>({})
user.subscribe((signedIn) => {
  if (!signedIn) unsaved.value = {}
})

type MailProps = { kind: Kind; lang: Language; own: Own }

function Mail({ kind, lang, own }: MailProps) {
  const name = kind.kind
  const key = `${name} ${lang}`
  const draft = unsaved.value[key]
  // Other mails may be edited while this one is saved.
  const setDraft = (changed: Draft | undefined) => {
    const { [key]: _, ...others } = unsaved.peek()
    unsaved.value = changed ? { ...others, [key]: changed } : others
  }
  const usual = kind.texts[lang]
  const shown = draft?.text ?? own
  // The pressed button goes when the editor opens or closes.
  const frame = useFocusWhenLost<HTMLLIElement>(draft !== undefined, 'input, button')
  return (
    <li class="card stack tight" lang={lang} ref={frame}>
      <div class="row between">
        <strong title={name}>{words.kinds[name]}</strong>
        {own.subject || own.body ? <span class="badge">{words.own}</span> : null}
        {!draft && (
          <Button
            label={fill(editOne, { name: words.kinds[name] })}
            onClick={() => setDraft({ text: { ...usual, ...own }, before: own })}
          >
            {edit}
          </Button>
        )}
      </div>
      {draft && <Editor kind={kind} lang={lang} draft={draft} change={setDraft} />}
      <MailPreview mail={{ kind: name, lang, ...shown }} />
    </li>
  )
}

type EditorProps = Omit<MailProps, 'own'> & {
  draft: Draft
  change: (draft: Draft | undefined) => void
}

function Editor({ kind, lang, draft, change }: EditorProps) {
  const { kind: name, placeholders, required } = kind
  const usual = kind.texts[lang]
  const { text, before } = draft
  const form = useForm(() => {
    saving = saving.catch(() => {}).then(store)
    return saving
  })
  async function store() {
    const { texts: stored } = await request(route, {})
    const current = stored[name]?.[lang] ?? {}
    const latest = () => unsaved.peek()[`${name} ${lang}`]
    // The default text stays the default when a later version changes it.
    const own = Object.fromEntries(
      (['subject', 'body'] as const).flatMap((part) =>
        text[part]?.trim() && text[part] !== usual[part] ? [[part, text[part]]] : [],
      ),
    )
    // After a lost answer the stored text is this one.
    if (![before, own].some((known) => JSON.stringify(known) === JSON.stringify(current))) {
      change({ text: latest()?.text ?? text, before: current })
      toast(fill(words.meanwhile, { text: current.subject ?? current.body ?? words.usual }))
      return
    }
    const { [lang]: _, ...others } = stored[name] ?? {}
    const isOwn = Object.keys(own).length > 0
    const changed = { ...stored, [name]: isOwn ? { ...others, [lang]: own } : others }
    const saved = await mutate('PATCH /v1/admin/settings', { body: { texts: changed } })
    patch(route, {}, () => saved)
    const typed = latest()?.text
    if (typed === text) change(undefined)
    else if (typed) change({ text: typed, before: own })
    toast(texts.console.system.settings.saved)
  }
  const place = `texts.${name}.${lang}`
  return (
    <form class="stack tight" onSubmit={form.onSubmit}>
      <Problems.Provider value={form.problems}>
        <TextField
          label={texts.fields.subject}
          name={`${place}.subject`}
          value={text.subject ?? ''}
          maxLength={200}
          dir="auto"
          onInput={({ currentTarget }) =>
            change({ text: { ...text, subject: currentTarget.value }, before })
          }
        />
        <TextArea
          label={texts.fields.body}
          hint={[
            fill(words.placeholders, { names: placeholders.map((one) => `{${one}}`).join(' ') }),
            ...(required ? [fill(words.required, { name: `{${required}}` })] : []),
          ].join(' ')}
          name={`${place}.body`}
          rows={8}
          value={text.body ?? ''}
          onInput={({ currentTarget }) =>
            change({ text: { ...text, body: currentTarget.value }, before })
          }
        />
      </Problems.Provider>
      <Problem text={form.problem} />
      <div class="row wrap">
        <Button submits tone="primary" isBusy={form.isBusy}>
          {texts.kit.save}
        </Button>
        <Button onClick={() => change({ text: usual, before })}>{words.usual}</Button>
        <Button onClick={() => change(undefined)}>{texts.kit.cancel}</Button>
      </div>
    </form>
  )
}
