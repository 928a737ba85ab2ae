import { Check, Copy } from 'lucide-preact'
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { ManagedUser } from '../../../../client/src/contract.ts'
import { Time } from '../../ui/time.tsx'
import { toast } from '../../ui/toast.tsx'
import { roleTitles } from './roles.ts'

export function PersonFacts({ person }: { person: ManagedUser }) {
  const { id, external_id, email_verified, email_bounced_at, locale, totp, created_at } = person
  const languages = new Intl.DisplayNames('en', { type: 'language' })
  return (
    <dl class="facts">
      <Fact title="Id">
        <Copyable text={id} />
      </Fact>
      {external_id !== null && (
        <Fact title="External id">
          <Copyable text={external_id} />
        </Fact>
      )}
      <Fact title="Role">{roleTitles[person.role]}</Fact>
      <Fact title="Address">{email_verified ? 'Verified' : 'Not verified'}</Fact>
      {email_bounced_at !== null && (
        <Fact title="Mails">
          <span class="error">
            Bouncing since <Time at={email_bounced_at} />
          </span>
        </Fact>
      )}
      <Fact title="Second factor">{totp ? 'On' : 'Off'}</Fact>
      <Fact title="Language">{languages.of(locale)}</Fact>
      <Fact title="Joined">
        <Time at={created_at} />
      </Fact>
    </dl>
  )
}

function Fact({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{title}</dt>
      <dd>{children}</dd>
    </div>
  )
}

function Copyable({ text }: { text: string }) {
  const [isCopied, setCopied] = useState(false)
  async function copy() {
    try {
      await navigator.clipboard.writeText(text)
      setCopied(true)
      toast('Copied.')
    } catch {
      // Browsers offer the clipboard over HTTPS only, and users may deny it.
      toast('The browser does not allow copying here. Select the text instead.')
    }
  }
  return (
    <span class="row">
      <code>{text}</code>
      <button type="button" class="button ghost icon" aria-label={`Copy ${text}`} onClick={copy}>
        {isCopied ? <Check /> : <Copy />}
      </button>
    </span>
  )
}
