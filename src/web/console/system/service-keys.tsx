import { KeyRound } from 'lucide-preact'
import type { Body, ServiceKey } from '../../../../client/src/contract.ts'
import { ActionButton } from '../../kit/button.tsx'
import { showOnce } from '../../kit/copy.tsx'
import { Boxes, TextField } from '../../kit/field.tsx'
import { askForm } from '../../kit/form.tsx'
import { localTime, now } from '../../kit/format.ts'
import { ListPage } from '../../kit/list.tsx'
import { Empty } from '../../kit/states.tsx'
import { fill, texts } from '../../kit/texts.tsx'
import { Times } from '../../kit/time.tsx'
import { mutate, useList } from '../data.ts'

const words = texts.console.system.keys
type NewServiceKey = Body<'POST /v1/admin/service-keys'>
type Scope = ServiceKey['scopes'][number]

const scopes = [
  'notifications',
  'follows',
  'calls',
  'users',
  'messages',
  'messages_as',
  'sessions',
] as const satisfies Scope[]
const powers: Partial<Record<Scope, string>> = words.powers

const route = 'GET /v1/admin/service-keys'
const refreshes: [typeof route] = [route]

export function ServiceKeys() {
  const list = useList(route, {})
  return (
    <ListPage
      text={words.about}
      action={words.add.button}
      add={addKey}
      label={texts.console.system.tabs.keys}
      list={list}
      empty={<Empty icon={KeyRound} {...words.none} />}
      render={(key) => <KeyRow serviceKey={key} />}
    />
  )
}

function KeyRow({ serviceKey }: { serviceKey: ServiceKey }) {
  const { id, name, created_at, last_used_at: usedAt } = serviceKey
  const { expires_at: expiresAt, revoked_at: revokedAt } = serviceKey
  const hasExpired = expiresAt !== null && Date.parse(expiresAt) <= now.value
  const isOver = revokedAt !== null || hasExpired
  const toneOf = (scope: Scope) => (powers[scope] && !isOver ? 'warning' : '')
  return (
    <>
      <div class="main">
        <h2 class="row wrap">
          <span class="prose">{name}</span>
          {isOver && <span class="badge">{revokedAt ? words.revoked : words.expired}</span>}
        </h2>
        <ul class="row wrap" aria-label={texts.fields.scopes}>
          {serviceKey.scopes.map((scope) => (
            <li key={scope} class={`badge ${toneOf(scope)}`}>
              {scope}
            </li>
          ))}
        </ul>
        <p class="soft small">
          <Times
            of={[
              [words.made, created_at],
              usedAt === null ? [words.neverUsed] : [words.lastUsed, usedAt],
              [words.revokedAt, revokedAt],
              [hasExpired ? words.expiredAt : words.endsAt, revokedAt ? null : expiresAt],
            ]}
          />
        </p>
      </div>
      {!isOver && (
        <ActionButton
          tone="danger"
          texts={words.revoke}
          values={{ name }}
          work={() =>
            mutate('DELETE /v1/admin/service-keys/{id}', { params: { id } }, { refreshes })
          }
        />
      )}
    </>
  )
}

async function addKey() {
  const made = await askForm({
    ...words.add,
    fields: <KeyFields />,
    submit: (given, attempt) =>
      mutate('POST /v1/admin/service-keys', { body: keyOf(given), ...attempt }, { refreshes }),
  })
  if (!made) return
  await showOnce({
    title: fill(words.madeTitle, { name: made.name }),
    text: words.madeText,
    secret: made.key,
    name: words.theKey,
  })
}

function keyOf(given: FormData): NewServiceKey {
  const day = String(given.get('expires_at'))
  const chosen = given.getAll('scopes')
  return {
    name: String(given.get('name')),
    scopes: scopes.filter((scope) => chosen.includes(scope)),
    ...(day && { expires_at: new Date(`${day}T23:59:59`).toISOString() }),
  }
}

const KeyFields = () => (
  <>
    <TextField
      label={texts.fields.name}
      hint={words.nameHint}
      name="name"
      maxLength={80}
      required
    />
    <Boxes
      label={texts.fields.scopes}
      name="scopes"
      options={scopes.map((scope) => [
        scope,
        <>
          <code>{scope}</code> {words.scopeTexts[scope]}{' '}
          {powers[scope] && <strong class="power">{powers[scope]}</strong>}
        </>,
      ])}
    />
    <TextField
      label={words.lastDay}
      hint={words.lastDayHint}
      name="expires_at"
      type="date"
      min={localTime(Date.now()).slice(0, 10)}
    />
  </>
)
