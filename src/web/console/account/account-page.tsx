import { LogOut, MonitorSmartphone } from 'lucide-preact'
import type { Profile, ProfileUpdate, Session } from '../../../../client/src/contract.ts'
import { Avatar, ownFile } from '../../kit/avatar.tsx'
import { ActionButton, Button, useAction } from '../../kit/button.tsx'
import { CheckBox, PasswordField, TextField } from '../../kit/field.tsx'
import { askForm, useFocusWhenLost } from '../../kit/form.tsx'
import { deviceOf } from '../../kit/format.ts'
import { Loaded, RowList, Section } from '../../kit/list.tsx'
import { Select } from '../../kit/select.tsx'
import { ShortcutsSwitch } from '../../kit/shortcuts.tsx'
import { Empty } from '../../kit/states.tsx'
import { Filled, fill, type Language, language, languages, texts } from '../../kit/texts.tsx'
import { ThemeSelect } from '../../kit/theme.tsx'
import { Time } from '../../kit/time.tsx'
import { toast } from '../../kit/toast.tsx'
import { ImageButton } from '../../kit/uploads.tsx'
import { canNotify, notifies, switchNotifications } from '../attention.ts'
import { mutate, patch, useList, useQuery } from '../data.ts'
import { client, logout, switchLanguage, user } from '../session.ts'
import { SecondFactor } from './second-factor.tsx'

const words = texts.console.account

export function AccountPage() {
  const profile = useQuery('GET /v1/users/me', {})
  return (
    <div class="page account">
      <header class="row between wrap">
        <h1>{texts.console.areas.account}</h1>
        <Button icon={LogOut} onClick={logout}>
          {texts.kit.logout}
        </Button>
      </header>
      {/* As high as what follows, so that nothing below it moves. */}
      <Loaded from={profile} loading={<ProfilePlaceholder />}>
        {(data) => (
          <>
            <OwnProfile profile={data} />
            <SecondFactor isOn={data.totp} />
          </>
        )}
      </Loaded>
      <OwnSessions />
      <ThisBrowser />
    </div>
  )
}

const ProfilePlaceholder = () => (
  <>
    <section class="card own-profile" aria-busy="true" />
    <section class="card factor" aria-busy="true" />
  </>
)

function OwnProfile({ profile }: { profile: Profile }) {
  const { display_name: name, email, locale, avatar_url: picture } = profile
  async function change(body: ProfileUpdate) {
    const refreshes: ['GET /v1/users/me'] = ['GET /v1/users/me']
    const changed = await mutate('PATCH /v1/users/me', { body }, { done: words.saved, refreshes })
    patch('GET /v1/users/me', {}, () => changed)
  }
  const { run: switchTo } = useAction(async (chosen: Language) => {
    await change({ locale: chosen })
    if (chosen !== language.value) await switchLanguage(chosen)
  })
  const buttons = useFocusWhenLost<HTMLDivElement>(picture, 'button:last-of-type')
  return (
    <section class="card own-profile row wrap" aria-label={words.profile}>
      <Avatar name={name} picture={picture} />
      <div class="grow entry-lines">
        <strong class="truncate">{name}</strong>
        <span class="soft truncate">{email}</span>
      </div>
      <Select label={texts.fields.lang} value={locale} options={languages} choose={switchTo} />
      <div class="row wrap" ref={buttons}>
        <Button onClick={() => askForName(name, change)}>{words.name.button}</Button>
        <Button onClick={askForAddress}>{words.address.button}</Button>
        <Button onClick={changePassword}>{words.changePassword.button}</Button>
        <ImageButton
          text={words.picture}
          send={client.files.upload}
          choose={(avatar_url) => change({ avatar_url })}
        />
        {ownFile(picture) && (
          <ActionButton
            texts={{ button: words.removePicture }}
            work={() => change({ avatar_url: null })}
          />
        )}
      </div>
    </section>
  )
}

const askForName = (name: string, change: (body: ProfileUpdate) => Promise<void>) =>
  askForm({
    ...words.name,
    action: texts.kit.save,
    fields: (
      <TextField
        label={texts.fields.name}
        name="display_name"
        defaultValue={name}
        maxLength={80}
        required
      />
    ),
    submit: (given) => change({ display_name: String(given.get('display_name')) }),
  })

async function askForAddress() {
  const address = await askForm({
    ...words.address,
    fields: (
      <>
        <TextField label={words.address.label} name="new_email" type="email" required />
        <PasswordField name="password" />
      </>
    ),
    async submit(given) {
      const new_email = String(given.get('new_email'))
      const body = { new_email, password: String(given.get('password')) }
      await mutate('POST /v1/auth/email/change', { body })
      return new_email
    },
  })
  if (address !== undefined) toast(fill(words.address.done, { address }))
}

const sessions = 'GET /v1/auth/sessions'

const changePassword = () =>
  askForm({
    ...words.changePassword,
    fields: (
      <>
        {/* For password managers. */}
        <input type="email" autocomplete="username" value={user.value?.email} hidden readOnly />
        <PasswordField label={words.currentPassword} name="current_password" />
        <PasswordField label={words.newPassword} name="new_password" isNew />
      </>
    ),
    submit(given) {
      const body = {
        current_password: String(given.get('current_password')),
        new_password: String(given.get('new_password')),
      }
      const done = words.changePassword.done
      return mutate('POST /v1/auth/password/change', { body }, { done, refreshes: [sessions] })
    },
  })

function OwnSessions() {
  const list = useList(sessions, {})
  return (
    <Section title={words.sessions} level={2}>
      <RowList
        label={words.sessions}
        list={list}
        empty={<Empty icon={MonitorSmartphone} title={words.noSessions} />}
        render={(session) => <SessionRow session={session} />}
      />
    </Section>
  )
}

function SessionRow({ session }: { session: Session }) {
  const { id, user_agent: agent, ip, current, created_at, last_used_at } = session
  const device = deviceOf(agent)
  const times = { used: <Time at={last_used_at} />, since: <Time at={created_at} /> }
  return (
    <>
      <div class="main">
        <h3 class="row" title={agent ?? undefined}>
          {device} {current && <span class="badge good">{words.thisOne}</span>}
        </h3>
        <p class="soft small">
          <Filled text={words.sessionTimes} values={times} />
          {ip && <span class="mono"> · {ip}</span>}
        </p>
      </div>
      {!current && (
        <ActionButton
          texts={words.endSession}
          values={{ device }}
          work={() =>
            mutate('DELETE /v1/auth/sessions/{id}', { params: { id } }, { refreshes: [sessions] })
          }
        />
      )}
    </>
  )
}

function ThisBrowser() {
  return (
    <section class="card stack" aria-labelledby="browser">
      <div class="row between wrap">
        <h2 id="browser">{words.browser}</h2>
        <ThemeSelect />
      </div>
      <ShortcutsSwitch />
      {canNotify && (
        <CheckBox
          label={words.notify}
          isOn={notifies.value}
          change={(isOn) => void switchNotifications(isOn)}
        />
      )}
    </section>
  )
}
