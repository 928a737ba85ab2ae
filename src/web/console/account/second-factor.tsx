import { useEffect, useRef, useState } from 'preact/hooks'
import { Field } from '../../ui/field.tsx'
import { toast } from '../../ui/toast.tsx'
import { useForm } from '../form.ts'
import { request } from '../session.ts'
import { FactorSetUp } from './factor-set-up.tsx'

type FactorProps = { isOn: boolean; onChanged: (isOn: boolean) => void }

export function SecondFactor({ isOn, onChanged }: FactorProps) {
  const [isOpen, setOpen] = useState(false)
  const section = useRef<HTMLElement>(null)
  const close = () => setOpen(false)
  function finish() {
    onChanged(!isOn)
    close()
  }
  // The focused element disappears with the open form, so the focus has to be placed.
  const wasOpen = useRef(false)
  useEffect(() => {
    if (wasOpen.current && !isOpen) section.current?.querySelector('button')?.focus()
    wasOpen.current = isOpen
  }, [isOpen])
  return (
    <section class="card stack" aria-labelledby="factor" ref={section}>
      {isOpen ? (
        <h2 id="factor">Second factor</h2>
      ) : (
        <State isOn={isOn} open={() => setOpen(true)} />
      )}
      {isOpen && isOn && <SwitchOff onDone={finish} onCancel={close} />}
      {isOpen && !isOn && <FactorSetUp onDone={finish} onCancel={close} />}
    </section>
  )
}

function State({ isOn, open }: { isOn: boolean; open: () => void }) {
  return (
    <div class="row between wrap">
      <div>
        <h2 id="factor" class="row">
          Second factor <span class={`badge ${isOn ? 'good' : ''}`}>{isOn ? 'On' : 'Off'}</span>
        </h2>
        <p class="soft small">
          {isOn
            ? 'Logging in takes your password and a code of your authenticator.'
            : 'Without it, whoever knows your password is you.'}
        </p>
      </div>
      <button type="button" class={`button ${isOn ? '' : 'primary'}`} onClick={open}>
        {isOn ? 'Switch it off' : 'Set it up'}
      </button>
    </div>
  )
}

function SwitchOff({ onDone, onCancel }: { onDone: () => void; onCancel: () => void }) {
  const { onSubmit, isBusy, problem } = useForm(async (given) => {
    const body = { password: String(given.get('password')), code: String(given.get('code')) }
    await request('DELETE /v1/auth/totp', { body })
    toast('The second factor is off.')
    onDone()
  })
  return (
    <form class="stack narrow-form" onSubmit={onSubmit}>
      <Field label="Password">
        {(attributes) => (
          <input
            name="password"
            type="password"
            autocomplete="current-password"
            required
            ref={(input) => input?.focus()}
            {...attributes}
          />
        )}
      </Field>
      <Field label="Code" hint="From your authenticator, or a recovery code." problem={problem}>
        {(attributes) => (
          <input name="code" autocomplete="one-time-code" required {...attributes} />
        )}
      </Field>
      <div class="row">
        <button type="submit" class="button danger" disabled={isBusy}>
          Switch off the second factor
        </button>
        <button type="button" class="button" onClick={onCancel}>
          Cancel
        </button>
      </div>
    </form>
  )
}
