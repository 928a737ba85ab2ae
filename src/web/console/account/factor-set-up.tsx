import { useEffect, useRef, useState } from 'preact/hooks'
import type { TotpSecret } from '../../../../client/src/contract.ts'
import { Field } from '../../ui/field.tsx'
import { useResource } from '../../ui/resource.ts'
import { Failure, Loading } from '../../ui/states.tsx'
import { Copyable } from '../copyable.tsx'
import { useForm } from '../form.ts'
import { request } from '../session.ts'
import { QrCode } from './qr-code.tsx'
import { RecoveryCodes } from './recovery-codes.tsx'

type SetUpProps = { onDone: () => void; onCancel?: () => void }

export function FactorSetUp({ onDone, onCancel }: SetUpProps) {
  const [codes, setCodes] = useState<string[]>()
  const secret = useResource('secret', (signal) => request('POST /v1/auth/totp', { signal }))
  if (codes) return <RecoveryCodes codes={codes} onKept={onDone} />
  if (secret.data) return <Scan secret={secret.data} onConfirmed={setCodes} onCancel={onCancel} />
  if (secret.error !== undefined) return <Failure error={secret.error} retry={secret.reload} />
  return <Loading rows={4} />
}

type ScanProps = {
  secret: TotpSecret
  onConfirmed: (codes: string[]) => void
  onCancel: (() => void) | undefined
}

function Scan({ secret, onConfirmed, onCancel }: ScanProps) {
  const first = useRef<HTMLParagraphElement>(null)
  useEffect(() => first.current?.focus(), [])
  const { onSubmit, isBusy, problem } = useForm(async (given) => {
    const body = { code: String(given.get('code')) }
    const { recovery_codes } = await request('POST /v1/auth/totp/confirm', { body })
    onConfirmed(recovery_codes)
  })
  return (
    <div class="scan">
      <QrCode text={secret.otpauth_url} label="The secret as a QR code" />
      <form class="stack" onSubmit={onSubmit}>
        <p tabIndex={-1} ref={first} class="unframed">
          Scan the picture with an authenticator on your phone, or type the secret there.
        </p>
        <Copyable
          text={secret.secret}
          shown={secret.secret.replace(/(.{4})(?=.)/g, '$1 ')}
          name="the secret"
        />
        <Field label="Code" hint="The six digits that it shows now." problem={problem}>
          {(attributes) => (
            <input
              name="code"
              inputMode="numeric"
              autocomplete="one-time-code"
              required
              {...attributes}
            />
          )}
        </Field>
        <div class="row wrap">
          <button type="submit" class="button primary" disabled={isBusy}>
            Switch on the second factor
          </button>
          {onCancel && (
            <button type="button" class="button" onClick={onCancel}>
              Cancel
            </button>
          )}
        </div>
      </form>
    </div>
  )
}
