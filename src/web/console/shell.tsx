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
import { useEffect, useRef } from 'preact/hooks'
import type { ChannelStatus } from '../../../client/src/client.ts'
import { Avatar } from '../kit/avatar.tsx'
import { Button, IconButton } from '../kit/button.tsx'
import { count } from '../kit/format.ts'
import { lazy, loadAllPages } from '../kit/lazy.tsx'
import { navigate, openTitle, path, restoreScroll, scrolled } from '../kit/router.ts'
import { showShortcuts, useShortcut } from '../kit/shortcuts.tsx'
import { ErrorBoundary } from '../kit/states.tsx'
import { fill, texts } from '../kit/texts.tsx'
import './attention.ts' // notifies of what comes
import { dataOf, forget, refreshSoon, totalOf, useQuery } from './data.ts'
import { DeskPage } from './desk/desk-page.tsx'
import { DeskViews } from './desk/list-pane.tsx'
import { client, goLive, logout, platform, status, user } from './session.ts'

const PeoplePage = lazy(async () => (await import('./people/people-page.tsx')).PeoplePage)
const ReportsPage = lazy(async () => (await import('./reports/reports-page.tsx')).ReportsPage)
const AnnouncementsPage = lazy(
  async () => (await import('./announcements/announcements-page.tsx')).AnnouncementsPage,
)
const SystemPage = lazy(async () => (await import('./system/system-page.tsx')).SystemPage)
const AccountPage = lazy(async () => (await import('./account/account-page.tsx')).AccountPage)
const { areas: titles, shell: words } = texts.console
const idleMilliseconds = 2_000
/** The sign of the platform, as in the icon of the tab. */
const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]')?.href

const tickets = 'GET /v1/admin/support/counts'
const reports = 'GET /v1/admin/reports'
const openQuery = { query: { status: 'open', per_page: 1 } } as const
const system = 'GET /v1/admin/system'
/** Warnings about the configuration, which do not change from one day to the next. */
const lastingCodes = ['no_smtp', 'public_url_http', 'no_admin_totp', 'origin_refused']

const waitingTickets = () => dataOf(tickets, {})?.waiting ?? 0
const openReports = () => totalOf(dataOf(reports, openQuery)) ?? 0
const urgentWarnings = () =>
  dataOf(system, {})?.warnings.filter(({ code }) => !lastingCodes.includes(code)).length ?? 0

type Area = {
  name: keyof typeof titles
  key: string
  icon: ComponentType
  page: ComponentType
  badge?: () => number
}

const areas: Area[] = [
  { name: 'desk', key: 'd', icon: Inbox, page: DeskPage, badge: waitingTickets },
  { name: 'reports', key: 'r', icon: Flag, page: ReportsPage, badge: openReports },
  { name: 'people', key: 'p', icon: UsersRound, page: PeoplePage },
  { name: 'announcements', key: 'b', icon: Megaphone, page: AnnouncementsPage },
  { name: 'system', key: 's', icon: Activity, page: SystemPage, badge: urgentWarnings },
  { name: 'account', key: 'a', icon: UserRound, page: AccountPage },
]

const areaNamed = (address: string) => areas.find(({ name }) => name === address.split('/')[2])

export function Shell() {
  const area = areaNamed(path.value)
  const main = useRef<HTMLElement>(null)
  useAttention()
  useProfile()
  useEffect(() => {
    if (!area) navigate(addressOfLink() ?? '/console/desk', 'replace')
  }, [area])
  useEffect(() => {
    const timer = setTimeout(loadAllPages, idleMilliseconds)
    return () => clearTimeout(timer)
  }, [])
  // Another page begins at its top, unless Back has led to it. A part that scrolls as it opens does so in a layout
  // effect, which runs before these.
  useEffect(() => {
    if (main.current) main.current.scrollTop = 0
  }, [path.value])
  useEffect(restoreScroll, [scrolled.value])
  useSignalEffect(() => {
    const area = areaNamed(path.value)
    const parts = [openTitle.value, area && titles[area.name], platform]
    const waiting = waitingTickets() + openReports()
    const prefix = waiting > 0 ? `(${count(waiting)}) ` : ''
    document.title = prefix + parts.filter(Boolean).join(' · ')
  })
  useShortcut('?', words.showShortcuts, showShortcuts)
  if (!area) return null
  const Page = area.page
  return (
    <div class="shell">
      <a class="skip visually-hidden" href="#main">
        {words.skip}
      </a>
      <header class="side">
        <p class="brand row">
          <img class="mark" src={icon} alt="" />
          <span class="truncate">{platform}</span>
        </p>
        <nav aria-label={words.areas}>
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
      <main
        id="main"
        tabIndex={-1}
        ref={main}
        class={path.value.split('/').length > 3 ? 'has-detail' : ''}
      >
        <ErrorBoundary place={path.value}>
          <Page />
        </ErrorBoundary>
      </main>
    </div>
  )
}

/** Reads what waits, for badges and the title of the tab. */
function useAttention() {
  // After each frame, too; but that read may fail.
  useQuery(tickets, {}, { every: 60, inBackground: true })
  // No frame says that a colleague has resolved one.
  useQuery(reports, openQuery, { every: 60, inBackground: true })
  useQuery(system, {}, { every: 300 })
  useEffect(
    () =>
      client.on('report_created', () => {
        forget(reports)
        refreshSoon(reports, openQuery)
      }),
    [],
  )
}

/** The stored session has the name and the address of the login. */
function useProfile() {
  const profile = useQuery('GET /v1/users/me', {}).data
  useEffect(() => {
    if (!profile || !user.value) return
    const { display_name, email } = profile
    user.value = { ...user.value, display_name, email }
  }, [profile])
}

function AreaLink({ area, isCurrent }: { area: Area; isCurrent: boolean }) {
  const { name, key, icon: Icon, badge } = area
  const title = titles[name]
  const address = `/console/${name}`
  useShortcut(`g ${key}`, fill(words.goTo, { area: title }), () => navigate(address))
  const amount = badge?.() ?? 0
  return (
    <>
      <a href={address} aria-current={isCurrent ? 'page' : undefined}>
        <Icon />
        <span class="truncate">{title}</span>
        {amount > 0 && <span class="badge number">{count(amount)}</span>}
      </a>
      {name === 'desk' && isCurrent && <DeskViews />}
    </>
  )
}

const tones = { open: 'good', connecting: 'warning', waiting: 'danger', closed: 'danger' } as const
const isOffline = (state: ChannelStatus) => state === 'waiting' || state === 'closed'

/** The service closes the oldest sockets of a user beyond fifty; such a tab reconnects on request. */
function Connection() {
  const { live, connecting, offlineShort } = texts.kit
  const state = status.value
  return (
    <span class="row">
      <span class="row small soft" role="status">
        <span class={`dot ${tones[state]}`} />
        {state === 'open' ? live : state === 'connecting' ? connecting : offlineShort}
      </span>
      {state === 'closed' && (
        <Button tone="ghost" onClick={goLive}>
          {words.reconnect}
        </Button>
      )}
    </span>
  )
}

function SideFooter() {
  const name = user.value?.display_name ?? ''
  return (
    <div class="side-footer stack">
      <div class="row between wrap">
        <Connection />
        <IconButton icon={Keyboard} label={texts.kit.shortcuts} keys="?" onClick={showShortcuts} />
      </div>
      <div class="row between">
        <span class="row me">
          <Avatar name={name} />
          <span class="small soft truncate">{name}</span>
        </span>
        <IconButton icon={LogOut} label={texts.kit.logout} onClick={logout} />
      </div>
    </div>
  )
}

/** Links in mails to the desk have the form `/console#ticket=ID`. */
function addressOfLink(): string | undefined {
  const id = new URLSearchParams(location.hash.slice(1)).get('ticket')
  return id ? `/console/desk/${encodeURIComponent(id)}` : undefined
}
