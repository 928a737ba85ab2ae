import { type Static, type TSchema, type TUnsafe, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import {
  CheckedText,
  described,
  Email,
  Maybe,
  maxUrlLength,
  Nullable,
  nameRule,
  OneOf,
  Sample,
  Text,
} from './api/fields.ts'
import { samples } from './api/samples.ts'
import type { Config } from './config.ts'
import { type FieldProblem, problem } from './lib/errors.ts'
import { locales } from './lib/i18n.ts'
import {
  type MailKind,
  type MailText,
  mailKinds,
  mailTextProblem,
  maxTextLength,
  type OwnTexts,
} from './lib/mail-texts.ts'
import { isAppUrl } from './lib/text.ts'

const setting = <T extends TSchema>(
  schema: T,
  fallback: (config: Config) => Static<T>,
  doc: string,
) => ({ schema: described(schema, doc), fallback, doc })

const contents = ['full', 'sender', 'none'] as const
export type ContentLevel = (typeof contents)[number]

const appUrl = (placeholders: readonly string[], annotations: object) =>
  CheckedText((text) => appUrlProblem(text, placeholders), annotations)
const link = (thing: string, path: string) =>
  Maybe(
    appUrl(['id'], {
      description: `Address of a ${thing} in the app; \`{id}\` is its id.`,
      examples: [`https://app.example.com/${path}/{id}`],
    }),
  )

const mailText = (kind: MailKind, part: keyof MailText, annotations: object) =>
  Maybe(
    CheckedText((text) => mailTextProblem(kind, part, text), {
      maxLength: maxTextLength[part],
      ...annotations,
    }),
  )
const mailTexts = (kind: MailKind) =>
  Type.Object(
    {
      subject: mailText(kind, 'subject', {
        description: 'One line, with placeholders such as `{platform}`.',
        examples: ['Welcome to {platform}'],
      }),
      body: mailText(kind, 'body', {
        description: 'Plain text; empty lines separate paragraphs, and `{link}` alone is a button.',
        examples: ['Hello {name},\n\n{link}'],
      }),
    },
    { title: 'MailText', additionalProperties: false },
  )
const byName = <T extends string>(
  names: readonly T[],
  schemaOf: (name: T) => TSchema,
  doc: string,
) =>
  Object.fromEntries(
    names.map((name) => [name, described(Maybe(schemaOf(name)), `${doc} \`${name}\`.`)]),
  )
const byLanguage = (kind: MailKind) =>
  Type.Object(
    byName(locales, () => mailTexts(kind), 'In the language'),
    { title: 'MailTextByLanguage', additionalProperties: false },
  )
const textsByKind = Type.Object(byName(mailKinds, byLanguage, 'Texts of the mail'), {
  title: 'MailTexts',
  additionalProperties: false,
  examples: [{ verify_email: { en: { subject: 'Welcome to {platform}' } } }],
})

const days = Type.Integer({ minimum: 0, maximum: 36_500, examples: [0] })
const supportEmail = 'Address for questions, shown at the end of mails.'

/** Every setting that an admin changes while the service runs. A test compares them with the table in the README. */
export const definitions = {
  platform_name: setting(
    Text(nameRule, { examples: ['Example'] }),
    ({ issuer }) => issuer.slice(0, 80),
    'Name of the platform in mails, pushes, pages and authenticators.',
  ),
  app_url: setting(
    Nullable(appUrl([], { examples: ['https://app.example.com/'] })),
    () => null,
    'Address of the app: https, or the app’s own scheme. Account pages and mails lead back to it.',
  ),
  support_email: setting(Nullable(Email(supportEmail)), () => null, supportEmail),
  logo_url: setting(
    Nullable(
      Sample('https://api.example.com/v1/files/tL7vV466OWRooNWgbEawpFdSnpeuFupCyXB2p1QnzQc/a.png'),
    ),
    () => null,
    'Logo in mails, account pages, tabs and the console: the address of an uploaded image.',
  ),
  accent: setting(
    CheckedText((text) => (/^#[0-9a-f]{6}$/i.test(text) ? undefined : problem('colour')), {
      examples: ['#1d4ed8'],
    }),
    () => '#1d4ed8',
    'Colour of buttons in mails and account pages, and of the sign of a platform without a logo.',
  ),
  links: setting(
    Type.Object(
      {
        conversation: link('conversation', 'chat'),
        ticket: link('ticket', 'help'),
        notification: link('notification', 'news'),
        home: Maybe(
          appUrl([], {
            description: 'Address of the app’s first page.',
            examples: ['https://app.example.com/inbox'],
          }),
        ),
      },
      {
        title: 'Links',
        additionalProperties: false,
        examples: [{ home: 'https://app.example.com/inbox' }],
      },
    ),
    () => ({}),
    'Where mails and pushes lead: `{"conversation", "ticket", "notification", "home"}`, each https or the app’s own scheme, with `{id}`.',
  ),
  texts: setting(
    textsByKind as unknown as TUnsafe<OwnTexts>, // objects by the kinds and languages
    () => ({}),
    'Texts of mails instead of the default ones: `{"kind": {"language": {"subject", "body"}}}`.',
  ),
  unread_mail_minutes: setting(
    Type.Integer({ minimum: 0, maximum: 10_080, examples: [15] }),
    () => 15,
    'Minutes after which unread messages are mailed, once until the person comes back; 0 is never.',
  ),
  push_content: setting(
    OneOf(contents, { examples: ['full'] }),
    (): ContentLevel => 'full',
    'Content of pushes: `full`, `sender` (names without texts) or `none` (only that there is something).',
  ),
  mail_content: setting(
    OneOf(contents, { examples: ['full'] }),
    (): ContentLevel => 'full',
    'Content of mails about messages, notifications and tickets: `full`, `sender` or `none`.',
  ),
  message_retention_days: setting(
    days,
    () => 0,
    'Days for which messages are kept; 0 is for ever.',
  ),
  ticket_retention_days: setting(
    days,
    () => 0,
    'Days for which tickets are kept after they were closed; 0 is for ever.',
  ),
  registration: setting(
    OneOf(['open', 'off'], { examples: ['open'] }),
    (config) => config.registration,
    'Whether people may register themselves: `open` or `off`.',
  ),
}

type Definitions = typeof definitions
export type SettingName = keyof Definitions
export type SettingValues = { [K in SettingName]: Static<Definitions[K]['schema']> }
/** Null is the default. */
export type SettingChanges = { [K in SettingName]?: SettingValues[K] | null | undefined }

export const settingNames = Object.keys(definitions) as SettingName[] // exactly the keys of the table

export const isSettingName = (name: string): name is SettingName => Object.hasOwn(definitions, name)

export const isSettingValue = (name: SettingName, value: unknown): boolean =>
  Value.Check(definitions[name].schema, value)

export const defaultSettings = (config: Config) =>
  Object.fromEntries(
    settingNames.map((name) => [name, definitions[name].fallback(config)]),
  ) as SettingValues // each value comes from its definition

export const linkTo = (links: SettingValues['links'], what: Linked, id: string) =>
  links[what]?.replaceAll('{id}', encodeURIComponent(id))
type Linked = 'conversation' | 'ticket' | 'notification'

function appUrlProblem(text: string, placeholders: readonly string[]): FieldProblem | undefined {
  if (text.length > maxUrlLength) return problem('too_long', maxUrlLength)
  const names = [...text.matchAll(/\{(.*?)\}/g)].map(([, name = '']) => name)
  const unknown = names.find((name) => !placeholders.includes(name))
  if (unknown !== undefined) return problem('placeholder', `{${unknown}}`)
  const example = text.replaceAll('{id}', samples.messageId)
  return isAppUrl(example) && !/[{}]/.test(example) ? undefined : problem('app_url')
}
