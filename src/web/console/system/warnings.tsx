import { TriangleAlert } from 'lucide-preact'
import type { System } from '../../../../client/src/contract.ts'
import { Copyable } from '../copyable.tsx'

type Remedy = { title: string; setting: string; link?: { href: string; text: string } }

const remedies: Record<string, Remedy> = {
  no_smtp: {
    title: 'Mails are not sent',
    setting: 'SMTP_URL=smtps://user:password@mail.example.com',
  },
  public_url_http: {
    title: 'The service is not reached by https',
    setting: 'PUBLIC_URL=https://chat.example.com',
  },
  no_admin_totp: {
    title: 'An admin has no second factor',
    setting: 'ADMIN_TOTP=required',
    link: { href: '/console/account', text: 'Set up your own' },
  },
  no_backup: {
    title: 'There is no recent backup',
    setting: 'hostline backup /var/backups/hostline',
  },
  replica_lag: {
    title: 'The bucket is behind',
    setting: 'hostline check',
  },
  replica_no_snapshot: {
    title: 'The bucket has no recent snapshot',
    setting: 'hostline replica status',
  },
}

export function Warnings({ warnings }: Pick<System, 'warnings'>) {
  return (
    <section class="stack tight" aria-labelledby="warnings">
      <h2 id="warnings">Needs your attention</h2>
      <ul class="entries">
        {warnings.map(({ code, message }) => (
          <li key={code}>
            <Warning message={message} remedy={remedies[code]} />
          </li>
        ))}
      </ul>
    </section>
  )
}

function Warning({ message, remedy }: { message: string; remedy: Remedy | undefined }) {
  return (
    <>
      <div class="main warning">
        <TriangleAlert />
        <div>
          {remedy && <h3>{remedy.title}</h3>}
          <p class="soft small">
            {message} {remedy?.link && <a href={remedy.link.href}>{remedy.link.text}</a>}
          </p>
        </div>
      </div>
      {remedy && <Copyable text={remedy.setting} name={`what to set: ${remedy.title}`} />}
    </>
  )
}
