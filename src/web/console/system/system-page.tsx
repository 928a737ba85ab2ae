import type { ComponentType } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { navigate, path, useTitle } from '../../kit/router.ts'
import { texts } from '../../kit/texts.tsx'
import { AuditLog } from './audit-log.tsx'
import { Bans } from './bans.tsx'
import { CannedReplies } from './canned-replies.tsx'
import { Jobs } from './jobs.tsx'
import { Mails } from './mails.tsx'
import { Overview } from './overview.tsx'
import { ServiceKeys } from './service-keys.tsx'
import { SettingsPage } from './settings.tsx'
import { WebhookPage } from './webhook.tsx'
import { Webhooks } from './webhooks.tsx'

const titles = texts.console.system.tabs
const tabs: { name: string; title: string; page: ComponentType }[] = [
  { name: '', title: titles.overview, page: Overview },
  { name: 'settings', title: titles.settings, page: SettingsPage },
  { name: 'mails', title: titles.mails, page: Mails },
  { name: 'jobs', title: titles.jobs, page: Jobs },
  { name: 'webhooks', title: titles.webhooks, page: Webhooks },
  { name: 'keys', title: titles.keys, page: ServiceKeys },
  { name: 'replies', title: titles.replies, page: CannedReplies },
  { name: 'bans', title: titles.bans, page: Bans },
  { name: 'audit', title: titles.audit, page: AuditLog },
]

export function SystemPage() {
  const [, , , name = '', id = ''] = path.value.split('/')
  const bar = useRef<HTMLElement>(null)
  const tab = tabs.find((known) => known.name === name)
  useEffect(() => {
    if (!tab) navigate('/console/system', 'replace')
  }, [tab])
  // On a phone the tabs scroll.
  useLayoutEffect(() => {
    bar.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' })
  }, [tab])
  useTitle(name === '' ? undefined : tab?.title)
  if (!tab) return null
  const Page = tab.page
  return (
    <div class="page system">
      <header class="row between wrap">
        <h1>{texts.console.areas.system}</h1>
      </header>
      <nav class="tabs" aria-label={texts.console.areas.system} ref={bar}>
        {tabs.map((known) => (
          <a
            key={known.name}
            href={`/console/system${known.name && `/${known.name}`}`}
            aria-current={known === tab ? 'page' : undefined}
          >
            {known.title}
          </a>
        ))}
      </nav>
      {name === 'webhooks' && id ? <WebhookPage key={id} id={id} /> : <Page />}
    </div>
  )
}
