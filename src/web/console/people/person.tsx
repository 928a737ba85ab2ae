import { useRef, useState } from 'preact/hooks'
import type { AccessUpdate, ManagedUser } from '../../../../client/src/contract.ts'
import { Avatar } from '../../kit/avatar.tsx'
import { ActionButton, Button } from '../../kit/button.tsx'
import { Copyable, download } from '../../kit/copy.tsx'
import { Choices, TextArea, TextField } from '../../kit/field.tsx'
import { askForm, useFocusWhenLost } from '../../kit/form.tsx'
import { deviceOf } from '../../kit/format.ts'
import { Facts, Loaded, Section } from '../../kit/list.tsx'
import { navigate, navigateFrom, useTitle, withQuery } from '../../kit/router.ts'
import { Filled, fill, language, texts } from '../../kit/texts.tsx'
import { Time } from '../../kit/time.tsx'
import { toast } from '../../kit/toast.tsx'
import { mutate, patch, patchItem, totalOf, useQuery } from '../data.ts'
import { categories, categoryNames, statusNames } from '../desk/views.ts'
import { BackLink } from '../panes.tsx'
import { ReportLines } from '../reports/report.tsx'
import { request, user } from '../session.ts'
import { Deliveries } from './deliveries.tsx'
import { roleOf, roleTitles } from './roles.ts'

const words = texts.console.people

const route = 'GET /v1/admin/users/{id}'
const listRoute = 'GET /v1/admin/users'
const sessionsRoute = 'GET /v1/admin/users/{id}/sessions'

type PersonProps = { person: ManagedUser }

export function PersonDetails({ id }: { id: string }) {
  const found = useQuery(route, { params: { id } }, { every: 30 })
  return (
    <article class="stack">
      <BackLink area="people" />
      <Loaded from={found} rows={8}>
        {(person) => (
          <>
            <Head person={person} />
            <Profile person={person} />
            <Access person={person} />
            <Sessions person={person} />
            <Tickets person={person} />
            <Reports person={person} />
            <Deliveries id={id} />
            <Data person={person} />
          </>
        )}
      </Loaded>
    </article>
  )
}

function show(person: ManagedUser) {
  patch(route, { params: { id: person.id } }, () => person)
  patchItem(listRoute, person.id, person)
}

/** True if the person is the signed-in admin and no other admin exists who could undo a lock-out. */
function useIsOnlyAdmin(id: string): boolean {
  const isOneself = id === user.value?.id
  const query = { role: 'admin', disabled: false, per_page: 1 } as const
  const { data } = useQuery(listRoute, isOneself ? { query } : undefined)
  return totalOf(data) === 1
}

/** Badges for an unusual role or state. */
export function PersonMarks({ person }: PersonProps) {
  const { role, disabled, email_verified } = person
  return (
    <span class="row">
      {disabled && <span class="badge danger">{words.disabled}</span>}
      {!disabled && !email_verified && <span class="badge warning">{words.notVerified}</span>}
      {(role === 'admin' || role === 'host' || role === 'guest') && (
        <span class="badge">{roleTitles[role]}</span>
      )}
    </span>
  )
}

function Head({ person }: PersonProps) {
  const { display_name, email, avatar_url, email_verified, totp } = person
  useTitle(display_name)
  // The pressed button may be gone.
  const frame = useFocusWhenLost<HTMLElement>(`${email_verified} ${totp}`, 'h2')
  return (
    <header class="person-head row" ref={frame}>
      <Avatar name={display_name} picture={avatar_url} />
      <div class="entry-lines">
        <div class="row wrap">
          <h2 tabIndex={-1} dir="auto">
            {display_name}
          </h2>
          <PersonMarks person={person} />
        </div>
        <span class="soft truncate">{email}</span>
      </div>
    </header>
  )
}

function Profile({ person }: PersonProps) {
  const { id, external_id, email_verified, email_bounced_at, locale, totp, created_at } = person
  const languages = new Intl.DisplayNames(language.value, { type: 'language' })
  return (
    <Facts
      of={[
        [texts.fields.id, <Copyable text={id} name={words.theId} />],
        [
          words.externalId,
          external_id && <Copyable text={external_id} name={words.theExternalId} />,
        ],
        [texts.fields.role, roleTitles[person.role]],
        [words.address, email_verified ? words.verified : words.notVerified],
        [
          texts.console.system.tabs.mails,
          email_bounced_at && (
            <span class="error">
              <Filled text={words.bouncing} values={{ time: <Time at={email_bounced_at} /> }} />
            </span>
          ),
        ],
        [texts.console.account.factor.title, totp ? texts.kit.on : texts.kit.off],
        [texts.fields.lang, languages.of(locale)],
        [words.joined, <Time at={created_at} />],
      ]}
    />
  )
}

function Access({ person }: PersonProps) {
  const { id, email, disabled, email_verified, totp, display_name: name } = person
  const params = { id }
  const isOnlyAdmin = useIsOnlyAdmin(id)
  const change = async (body: AccessUpdate) =>
    show(await mutate('PATCH /v1/admin/users/{id}', { params, body }))

  async function changeRole() {
    const changed = await askForRole(person)
    if (!changed) return
    show(changed)
    toast(fill(words.changeRole.done, { name, role: roleTitles[changed.role] }))
  }

  return (
    <Section title={words.access}>
      {id === user.value?.id && (
        <p class="notice">{isOnlyAdmin ? words.onlyAdmin : words.oneself}</p>
      )}
      <div class="row wrap">
        <Button disabled={isOnlyAdmin} onClick={changeRole}>
          {words.changeRole.button}
        </Button>
        {!email_verified && (
          <ActionButton
            texts={words.verify}
            values={{ email }}
            work={() => change({ email_verified: true })}
          />
        )}
        {totp && id !== user.value?.id && (
          <ActionButton
            tone="danger"
            texts={words.removeFactor}
            values={{ name }}
            work={async () => {
              await mutate('DELETE /v1/admin/users/{id}/totp', { params })
              show({ ...person, totp: false })
            }}
          />
        )}
        <ActionButton
          tone={disabled ? undefined : 'danger'}
          disabled={isOnlyAdmin}
          texts={disabled ? words.enable : words.disable}
          values={{ name }}
          work={() => change({ disabled: !disabled })}
        />
      </div>
    </Section>
  )
}

/** @returns the person with another role; undefined when it stays */
function askForRole({ id, display_name: name, email_verified, role }: ManagedUser) {
  // The service derives which of the two it is from the verified address.
  const unprivileged = email_verified ? 'verified_user' : 'user'
  const { title, action } = words.changeRole
  return askForm<ManagedUser | undefined>({
    title: fill(title, { name }),
    action,
    fields: (
      <Choices
        label={texts.fields.role}
        name="role"
        value={role}
        options={(['guest', unprivileged, 'host', 'admin'] as const).map((choice) => [
          choice,
          <span class="entry-lines">
            <strong>{roleTitles[choice]}</strong>
            <span class="small soft">{words.roleMeanings[choice]}</span>
          </span>,
        ])}
      />
    ),
    async submit(given) {
      const chosen = roleOf(String(given.get('role')))
      if (chosen === undefined || chosen === role) return undefined
      return mutate('PATCH /v1/admin/users/{id}', { params: { id }, body: { role: chosen } })
    },
  })
}

/** Loaded on request only, because each look is recorded in the audit log. */
function Sessions({ person }: PersonProps) {
  const { id, display_name: name } = person
  const params = { id }
  const input = { params, query: { per_page: 100 } }
  const [isAsked, setAsked] = useState(false)
  const heading = useRef<HTMLHeadingElement>(null)
  const sessions = useQuery(sessionsRoute, isAsked ? input : undefined, { isOnce: true })
  const { text } = words.endSessions
  const isOneself = id === user.value?.id
  return (
    <Section title={texts.console.account.sessions} heading={heading}>
      {isAsked ? (
        <Loaded from={sessions} rows={2}>
          {({ data }) =>
            data.length === 0 ? (
              <p class="soft">{words.noSessions}</p>
            ) : (
              <ul class="lines">
                {data.map(({ id, user_agent, ip, created_at, last_used_at }) => (
                  <li key={id} class="entry-lines">
                    <span class="truncate" title={user_agent ?? undefined}>
                      {deviceOf(user_agent)}
                    </span>
                    <span class="small soft">
                      <Filled
                        text={words.sessionTimes}
                        values={{
                          ip: ip ?? words.unknownIp,
                          used: <Time at={last_used_at} />,
                          since: <Time at={created_at} />,
                        }}
                      />
                    </span>
                  </li>
                ))}
              </ul>
            )
          }
        </Loaded>
      ) : (
        <p class="soft small">{words.sessionsRecorded}</p>
      )}
      <div class="row wrap">
        {!isAsked && (
          <Button
            onClick={() => {
              setAsked(true)
              heading.current?.focus()
            }}
          >
            {words.showSessions}
          </Button>
        )}
        <ActionButton
          tone="danger"
          texts={{ ...words.endSessions, text: isOneself ? words.endOwnSessions : text }}
          values={{ name }}
          work={async () => {
            await mutate('DELETE /v1/admin/users/{id}/sessions', { params })
            patch(sessionsRoute, input, (before) => ({ ...before, data: [] }))
          }}
        />
      </div>
    </Section>
  )
}

const shownTickets = 20

/** Asks for the first message of a ticket for the person, and shows the ticket. */
async function openTicket({ id: user_id, display_name: name }: ManagedUser) {
  const { fields, kit } = texts
  const opened = await askForm({
    title: fill(kit.writeTo, { name }),
    text: fill(words.openTicket.text, { name }),
    action: kit.send,
    fields: (
      <>
        <TextField label={fields.subject} name="subject" required maxLength={200} dir="auto" />
        <Choices
          label={texts.tickets.category}
          name="category"
          value="other"
          options={categories.map((value) => [value, categoryNames[value]])}
          isAcross
        />
        <TextArea label={fields.message} name="body" required rows={6} maxLength={10_000} />
      </>
    ),
    submit(given, attempt) {
      return mutate('POST /v1/admin/support/tickets', {
        ...attempt,
        body: {
          user_id,
          subject: String(given.get('subject')),
          category: categories.find((value) => value === given.get('category')) ?? null,
          body: String(given.get('body')),
        },
      })
    },
  })
  if (opened) navigate(`/console/desk/${opened.id}`)
}

function Tickets({ person }: PersonProps) {
  const { id, email } = person
  const query = { user_id: id, limit: shownTickets + 1 }
  const tickets = useQuery('GET /v1/admin/support/tickets', { query })
  return (
    <Section title={texts.fields.tickets}>
      <Loaded from={tickets} rows={2}>
        {({ data }) => (
          <>
            {data.length === 0 && <p class="soft">{words.noTickets}</p>}
            <ul class="lines">
              {data.slice(0, shownTickets).map(({ id, subject, status, updated_at }) => (
                <li key={id} class="row between">
                  <a class="truncate" href={`/console/desk/${id}`} dir="auto">
                    {subject}
                  </a>
                  <span class="small soft end">
                    {statusNames[status]} · <Time at={updated_at} />
                  </span>
                </li>
              ))}
            </ul>
            {data.length > shownTickets && (
              <a href={`/console/desk?view=all&q=${encodeURIComponent(email)}`}>
                {words.allTickets}
              </a>
            )}
          </>
        )}
      </Loaded>
      <div class="row wrap">
        <Button onClick={() => openTicket(person)}>{words.openTicket.button}</Button>
      </div>
    </Section>
  )
}

function Reports({ person: { id } }: PersonProps) {
  const query = { reported_id: id, limit: shownTickets }
  const reports = useQuery('GET /v1/admin/reports', { query })
  return (
    <Section title={texts.console.areas.reports}>
      <Loaded from={reports} rows={2}>
        {({ data }) =>
          data.length === 0 ? <p class="soft">{words.noReports}</p> : <ReportLines reports={data} />
        }
      </Loaded>
    </Section>
  )
}

function Data({ person }: PersonProps) {
  const { id, email, disabled, display_name: name } = person
  const params = { id }
  const isOnlyAdmin = useIsOnlyAdmin(id)
  function leave() {
    patchItem(listRoute, id, undefined)
    navigateFrom(`/console/people/${id}`, withQuery({}, '/console/people'), 'replace')
  }
  return (
    <Section title={words.data}>
      <div class="row wrap">
        <ActionButton
          disabled={disabled}
          title={disabled ? words.noMailDisabled : undefined}
          texts={words.reset}
          values={{ email }}
          work={() => mutate('POST /v1/admin/users/{id}/password-reset', { params })}
        />
        <ActionButton
          texts={words.export}
          work={async () => {
            const everything = await request('GET /v1/admin/users/{id}/export', { params })
            const text = JSON.stringify(everything, null, 2)
            download(`hostline-${id}.json`, text, 'application/json')
          }}
        />
        <ActionButton
          tone="danger"
          disabled={isOnlyAdmin}
          texts={words.remove}
          values={{ name, email }}
          typed={name}
          work={async () => {
            await mutate('DELETE /v1/admin/users/{id}', { params })
            leave()
          }}
        />
        <ActionButton
          tone="danger"
          disabled={isOnlyAdmin}
          texts={words.purge}
          values={{ name, email }}
          load={async () => ({ ...(await request('GET /v1/admin/users/{id}/purge', { params })) })}
          typed={name}
          work={async () => {
            await mutate('POST /v1/admin/users/{id}/purge', { params })
            leave()
          }}
        />
      </div>
      <p class="soft small">{fill(words.exportHint, { name })}</p>
    </Section>
  )
}
