import { LogOut } from 'lucide-preact'
import { useResource } from '../../ui/resource.ts'
import { Failure, Loading } from '../../ui/states.tsx'
import { ThemeSelect } from '../../ui/theme.tsx'
import { logout, request } from '../session.ts'
import './account.css'
import { OwnSessions } from './own-sessions.tsx'
import { PasswordForm } from './password-form.tsx'
import { SecondFactor } from './second-factor.tsx'

export function AccountPage() {
  const profile = useResource('profile', (signal) => request('GET /v1/users/me', { signal }))
  return (
    <div class="page account">
      <header>
        <div>
          <h1>Account</h1>
          <p class="prose">
            {profile.data && `${profile.data.display_name}, ${profile.data.email}`}&nbsp;
          </p>
        </div>
        <button type="button" class="button" onClick={logout}>
          <LogOut /> Log out
        </button>
      </header>
      {profile.data ? (
        <SecondFactor
          isOn={profile.data.totp}
          onChanged={(totp) => profile.update((before) => ({ ...before, totp }))}
        />
      ) : (
        <section class="card">
          {profile.error === undefined ? (
            <Loading rows={3} />
          ) : (
            <Failure error={profile.error} retry={profile.reload} />
          )}
        </section>
      )}
      <PasswordForm email={profile.data?.email} />
      <OwnSessions />
      <section class="card row between wrap">
        <div>
          <h2>Appearance</h2>
          <p class="soft small">Only in this browser.</p>
        </div>
        <div>
          <ThemeSelect />
        </div>
      </section>
    </div>
  )
}
