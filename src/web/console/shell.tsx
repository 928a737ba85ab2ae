import { useSignalEffect } from '@preact/signals'
import {
  Activity,
  Flag,
  Inbox,
  Keyboard,
  LogOut,
  Megaphone,
  UserRound,
  UsersRound,
} from 'lucide-preact'
import type { ComponentType } from 'preact'
import { useEffect } from 'preact/hooks'
import type { ChannelStatus } from '../../../client/src/client.ts'
import { ConnectionState } from '../ui/connection.tsx'
import { count } from '../ui/format.ts'
import { navigate, path } from '../ui/router.ts'
import { showShortcuts, useShortcut } from '../ui/shortcuts.tsx'
import { AccountPage } from './account/account-page.tsx'
import { AnnouncementsPage } from './announcements/announcements-page.tsx'
import { deskCounts, openReports } from './counts.ts'
import { DeskPage } from './desk/desk-page.tsx'
import { DeskViews } from './desk/desk-views.tsx'
import { PeoplePage } from './people/people-page.tsx'
import { ReportsPage } from './reports/reports-page.tsx'
import { goLive, logout, status, user } from './session.ts'
import { SystemPage } from './system/system-page.tsx'
import { openTitle } from './title.ts'

type Area = {
  name: string
  title: string
  key: string
  icon: ComponentType
  page: ComponentType
  badge?: () => number | undefined
}

const areas: Area[] = [
  {
    name: 'desk',
    title: 'Desk',
    key: 'd',
    icon: Inbox,
    page: DeskPage,
    badge: () => deskCounts.value?.waiting,
  },
  {
    name: 'reports',
    title: 'Reports',
    key: 'r',
    icon: Flag,
    page: ReportsPage,
    badge: () => openReports.value,
  },
  { name: 'people', title: 'People', key: 'p', icon: UsersRound, page: PeoplePage },
  {
    name: 'announcements',
    title: 'Broadcast',
    key: 'b',
    icon: Megaphone,
    page: AnnouncementsPage,
  },
  { name: 'system', title: 'System', key: 's', icon: Activity, page: SystemPage },
  { name: 'account', title: 'Account', key: 'a', icon: UserRound, page: AccountPage },
]

const areaNamed = (address: string) => areas.find(({ name }) => name === address.split('/')[2])

export function Shell() {
  const area = areaNamed(path.value)
  useEffect(() => {
    if (!area) navigate(addressOfLink() ?? '/console/desk', 'replace')
  }, [area])
  useSignalEffect(() => {
    const parts = [openTitle.value, areaNamed(path.value)?.title, 'Hostline']
    document.title = parts.filter(Boolean).join(' · ')
  })
  useShortcut('?', 'Show the shortcuts', showShortcuts)
  if (!area) return null
  const Page = area.page
  return (
    <div class="shell">
      <a class="skip visually-hidden" href="#main">
        Skip to the content
      </a>
      <header class="side">
        <p class="brand">Hostline</p>
        <nav aria-label="Areas">
          {areas.map((known) => (
            <AreaLink key={known.name} area={known} isCurrent={known === area} />
          ))}
        </nav>
        <SideFooter />
      </header>
      {isOffline(status.value) && (
        <div class="offline-bar">
          <Connection />
        </div>
      )}
      <main id="main" tabIndex={-1} class={path.value.split('/').length > 3 ? 'has-detail' : ''}>
        <Page />
      </main>
    </div>
  )
}

function AreaLink({ area, isCurrent }: { area: Area; isCurrent: boolean }) {
  const { name, title, key, icon: Icon, badge } = area
  const address = `/console/${name}`
  useShortcut(`g ${key}`, `Go to ${title}`, () => navigate(address))
  const waiting = badge?.() ?? 0
  return (
    <>
      <a href={address} aria-current={isCurrent ? 'page' : undefined}>
        <Icon />
        <span class="title">{title}</span>
        {waiting > 0 && <span class="badge accent number">{count(waiting)}</span>}
      </a>
      {name === 'desk' && isCurrent && <DeskViews />}
    </>
  )
}

const isOffline = (state: ChannelStatus) => state === 'waiting' || state === 'closed'

/** The service closes the oldest sockets of a user beyond fifty; such a tab reconnects on request. */
function Connection() {
  return (
    <span class="row">
      <ConnectionState status={status.value} />
      {status.value === 'closed' && (
        <button type="button" class="button ghost" onClick={goLive}>
          Reconnect
        </button>
      )}
    </span>
  )
}

function SideFooter() {
  return (
    <div class="side-footer">
      <Connection />
      <div class="row between">
        <span class="small soft truncate">{user.value?.display_name}</span>
        <span class="row">
          <button
            type="button"
            class="button ghost icon"
            aria-label="Keyboard shortcuts"
            title="Keyboard shortcuts (?)"
            onClick={showShortcuts}
          >
            <Keyboard />
          </button>
          <button
            type="button"
            class="button ghost icon"
            aria-label="Log out"
            title="Log out"
            onClick={logout}
          >
            <LogOut />
          </button>
        </span>
      </div>
    </div>
  )
}

/** Links in mails to the desk have the form `/console#ticket=ID`. */
function addressOfLink(): string | undefined {
  const id = new URLSearchParams(location.hash.slice(1)).get('ticket')
  return id ? `/console/desk/${encodeURIComponent(id)}` : undefined
}
