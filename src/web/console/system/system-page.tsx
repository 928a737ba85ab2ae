import type { ComponentType } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { navigate, path } from '../../ui/router.ts'
import { useTitle } from '../title.ts'
import { AuditLog } from './audit-log.tsx'
import { CannedReplies } from './canned-replies.tsx'
import { Jobs } from './jobs.tsx'
import { Overview } from './overview.tsx'
import { ServiceKeys } from './service-keys.tsx'
import './system.css'
import { WebhookPage } from './webhook-page.tsx'
import { Webhooks } from './webhooks.tsx'

const tabs: { name: string; title: string; page: ComponentType }[] = [
  { name: '', title: 'Overview', page: Overview },
  { name: 'jobs', title: 'Jobs', page: Jobs },
  { name: 'webhooks', title: 'Webhooks', page: Webhooks },
  { name: 'keys', title: 'Service keys', page: ServiceKeys },
  { name: 'replies', title: 'Canned replies', page: CannedReplies },
  { name: 'audit', title: 'Audit log', page: AuditLog },
]

export function SystemPage() {
  const [, , , name = '', id = ''] = path.value.split('/')
  const bar = useRef<HTMLElement>(null)
  const tab = tabs.find((known) => known.name === name)
  useEffect(() => {
    if (!tab) navigate('/console/system', 'replace')
    // On a phone the tabs scroll.
    else bar.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' })
  }, [tab])
  useTitle(name === '' ? undefined : tab?.title)
  if (!tab) return null
  const Page = tab.page
  return (
    <div class="page system">
      <header>
        <h1>System</h1>
      </header>
      <nav class="tabs" aria-label="System" ref={bar}>
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
