import { Copy, Download } from 'lucide-preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { encode } from 'uqr'
import type { TotpSecret } from '../../../../client/src/contract.ts'
import { ApiError } from '../../../../client/src/errors.ts'
import { Button } from '../../kit/button.tsx'
import { Copyable, download, useCopy } from '../../kit/copy.tsx'
import { openDialog, useStayOpen } from '../../kit/dialog.tsx'
import { CodeField, PasswordField } from '../../kit/field.tsx'
import { askForm, useFocusWhenLost, useForm } from '../../kit/form.tsx'
import { Failure, Loading } from '../../kit/states.tsx'
import { texts } from '../../kit/texts.tsx'
import { toast } from '../../kit/toast.tsx'
import { mutate, patch, useQuery } from '../data.ts'
import { logout, needsFactor, refusalOf } from '../session.ts'

const words = texts.console.account.factor
const profile = 'GET /v1/users/me'

/** Shown when the service requires a second factor of every admin: no other request works before it is set up. */
export function RequiredFactor() {
  return (
    <main class="page account" tabIndex={-1}>
      <header class="row between wrap">
        <div>
          <h1>{words.requiredTitle}</h1>
          <p>{words.requiredText}</p>
        </div>
        <Button onClick={logout}>{texts.kit.logout}</Button>
      </header>
      <section class="card" aria-label={words.title}>
        <SetUp
          onDone={() => {
            needsFactor.value = false
          }}
        />
      </section>
    </main>
  )
}

const show = (totp: boolean) => patch(profile, {}, (before) => ({ ...before, totp }))

export function SecondFactor({ isOn }: { isOn: boolean }) {
  const [isOpen, setOpen] = useState(false)
  // The focused element disappears with the open form.
  const section = useFocusWhenLost<HTMLElement>(isOpen, 'button')
  async function change() {
    if (!isOn) setOpen(true)
    else if (await askToSwitchOff()) show(false)
  }
  function finish() {
    show(true)
    setOpen(false)
  }
  return (
    <section class="card stack factor" aria-labelledby="factor" ref={section}>
      <div class="row between wrap">
        <div>
          <h2 id="factor" class="row">
            {words.title}{' '}
            <span class={`badge ${isOn ? 'good' : ''}`}>{isOn ? texts.kit.on : texts.kit.off}</span>
          </h2>
          <p class="soft small">{isOn ? words.onText : words.offText}</p>
        </div>
        {!isOpen && (
          <div class="row wrap">
            {isOn && <Button onClick={renewCodes}>{words.renew}</Button>}
            <Button tone={isOn ? undefined : 'primary'} onClick={change}>
              {isOn ? words.switchOff : words.setUp}
            </Button>
          </div>
        )}
      </div>
      {isOpen && <SetUp onDone={finish} onCancel={() => setOpen(false)} />}
    </section>
  )
}

const askToSwitchOff = () =>
  askForm({
    title: words.switchOffAction,
    action: words.switchOff,
    tone: 'danger',
    fields: <ProofFields />,
    async submit(given) {
      const done = words.isOff
      await mutate('DELETE /v1/auth/totp', { body: proofOf(given) }, { done, refreshes: [profile] })
      return true
    },
  })

async function renewCodes() {
  const renewed = await askForm({
    title: words.renew,
    text: words.renewText,
    action: words.renewAction,
    fields: <ProofFields codeHint={words.renewCodeHint} />,
    submit(given) {
      const body = proofOf(given)
      return mutate('POST /v1/auth/totp/recovery-codes', { body }, { refreshes: [profile] })
    },
  })
  if (!renewed) return
  await openDialog((close) => (
    <RecoveryCodes codes={renewed.recovery_codes} isRenewal onKept={() => close()} />
  ))
}

const ProofFields = ({ codeHint }: { codeHint?: string }) => (
  <>
    <PasswordField name="password" />
    <CodeField hint={codeHint} />
  </>
)

const proofOf = (given: FormData) => ({
  password: String(given.get('password')),
  code: String(given.get('code')),
})

function SetUp({ onDone, onCancel }: { onDone: () => void; onCancel?: () => void }) {
  const [codes, setCodes] = useState<string[]>()
  const [secret, setSecret] = useState<TotpSecret>()
  const [error, setError] = useState<unknown>()
  function start() {
    setError(undefined)
    mutate('POST /v1/auth/totp', {}).then(setSecret, fail)
  }
  function onAlreadyOn() {
    toast(words.isOn)
    onDone()
  }
  function fail(problem: unknown) {
    if (problem instanceof ApiError && problem.reason === 'totp_exists') onAlreadyOn()
    // The dialog that asks for the password was cancelled.
    else if (onCancel && refusalOf(problem) === 'confirm_required') onCancel()
    else setError(problem)
  }
  useEffect(start, [])
  if (codes) return <RecoveryCodes codes={codes} onKept={onDone} />
  if (secret) return <Scan secret={secret} {...{ onConfirmed: setCodes, onAlreadyOn, onCancel }} />
  return error === undefined ? <Loading rows={4} /> : <Failure error={error} retry={start} />
}

type ScanProps = {
  secret: TotpSecret
  onConfirmed: (codes: string[]) => void
  onAlreadyOn: () => void
  onCancel: (() => void) | undefined
}

function Scan({ secret, onConfirmed, onAlreadyOn, onCancel }: ScanProps) {
  const first = useRef<HTMLParagraphElement>(null)
  // At once: it must not take the focus from a code that is being typed.
  useLayoutEffect(() => first.current?.focus(), [])
  const { onSubmit, isBusy, problem, problems } = useForm(async (given) => {
    const body = { code: String(given.get('code')) }
    const { recovery_codes: codes } = await mutate(
      'POST /v1/auth/totp/confirm',
      { body },
      { refreshes: [profile] },
    )
    onConfirmed(codes)
  })
  const isOn = useQuery(profile, {}).data?.totp === true
  // Another tab has confirmed it, or the answer was lost.
  useEffect(() => {
    if (isOn && !isBusy) onAlreadyOn()
  }, [isOn, isBusy])
  return (
    <div class="scan">
      <QrCode text={secret.otpauth_url} label={words.qr} />
      <form class="stack" onSubmit={onSubmit}>
        <p tabIndex={-1} ref={first} class="unframed">
          {words.scan}
        </p>
        <Copyable
          text={secret.secret}
          shown={secret.secret.replace(/(.{4})(?=.)/g, '$1 ')}
          name={texts.kit.theSecret}
        />
        <CodeField hint={words.newCodeHint} problem={problem ?? problems['code']} />
        <div class="row wrap">
          <Button submits tone="primary" disabled={isBusy}>
            {words.switchOn}
          </Button>
          {onCancel && <Button onClick={onCancel}>{texts.kit.cancel}</Button>}
        </div>
      </form>
    </div>
  )
}

/** A QR code, always dark on light, as cameras expect. */
function QrCode({ text, label }: { text: string; label: string }) {
  const { size, data } = encode(text, { border: 2 })
  const squares = data.flatMap((row, y) =>
    row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])),
  )
  return (
    <svg class="qr" viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label}>
      <path d={squares.join('')} shape-rendering="crispEdges" />
    </svg>
  )
}

type RecoveryCodesProps = { codes: string[]; isRenewal?: boolean; onKept: () => void }

/** Recovery codes. The service does not show them again. */
function RecoveryCodes({ codes, isRenewal = false, onKept }: RecoveryCodesProps) {
  const text = codes.join('\n')
  // The first one is the title of a dialog.
  const Heading = isRenewal ? 'h2' : 'h3'
  const heading = useRef<HTMLHeadingElement>(null)
  const list = useRef<HTMLUListElement>(null)
  const { isCopied, copy } = useCopy(text, list)
  useStayOpen(heading)
  useEffect(() => heading.current?.focus(), [])
  useEffect(() => {
    if (isCopied) toast(words.copied)
  }, [isCopied])
  return (
    <div class="stack">
      <div>
        <Heading tabIndex={-1} ref={heading} class="unframed">
          {words.keepTitle}
        </Heading>
        <p class="soft small">{isRenewal ? words.renewedText : words.keepText}</p>
      </div>
      <ul class="codes mono" ref={list}>
        {codes.map((code) => (
          <li key={code}>{code}</li>
        ))}
      </ul>
      <div class="row wrap">
        <Button icon={Copy} onClick={copy}>
          {words.copy}
        </Button>
        <Button
          icon={Download}
          onClick={() => download('hostline-recovery-codes.txt', `${text}\n`)}
        >
          {words.download}
        </Button>
        <Button tone="primary" onClick={onKept}>
          {words.kept}
        </Button>
      </div>
    </div>
  )
}
