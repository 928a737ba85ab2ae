import { useId } from 'preact/hooks'
import { texts } from './language.tsx'
import type { Session } from './session.ts'

const tones = {
  open: 'good',
  connecting: 'warning',
  waiting: 'danger',
  closed: 'danger',
  cut: 'danger',
} as const

export function ConnectionSwitch({ session }: { session: Session }) {
  const { label, states } = texts.value.connection
  const id = useId()
  const isCut = session.isCut.value
  const state = isCut ? 'cut' : session.status.value
  return (
    <>
      <label class="switch small" for={id}>
        <span class={`dot ${tones[state]}`} />
        {label}
        <input
          id={id}
          type="checkbox"
          role="switch"
          checked={!isCut}
          aria-checked={!isCut}
          aria-describedby={`${id}-state`}
          onChange={({ currentTarget }) => session.setCut(!currentTarget.checked)}
        />
      </label>
      <p id={`${id}-state`} class={`connection-state small ${state}`} role="status">
        {states[state]}
      </p>
    </>
  )
}
