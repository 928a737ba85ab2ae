import { ChevronDown } from 'lucide-preact'
import type { Kind } from './draft.ts'
import { type Status, statuses } from './words.ts'

type SendButtonProps = {
  kind: Kind
  status: Status | undefined
  choose: (status: Status | undefined) => void
  isBusy: boolean
  isReady: boolean
}

const actions: Record<Status, string> = {
  open: 'Send and set open',
  in_progress: 'Send and set in progress',
  resolved: 'Send and resolve',
  closed: 'Send and close',
}

/** A send button with a menu for the status of the ticket. */
export function SendButton({ kind, status, choose, isBusy, isReady }: SendButtonProps) {
  const isReply = kind === 'reply'
  const action = status && isReply ? actions[status] : isReply ? 'Send' : 'Add note'
  return (
    <span class="split">
      <button
        type="submit"
        class="button primary"
        title="Ctrl or ⌘ + Enter"
        disabled={!isReady || isBusy}
      >
        {isBusy ? 'Sending…' : action}
      </button>
      {isReply && (
        <span class={`button primary icon${isReady ? '' : ' idle'}`}>
          <ChevronDown />
          <select
            aria-label="Status after sending"
            value={status ?? ''}
            onChange={(event) => {
              const { value } = event.currentTarget
              choose(statuses.find((known) => known === value))
            }}
          >
            <option value="">Send, status as it is</option>
            {statuses.map((value) => (
              <option key={value} value={value}>
                {actions[value]}
              </option>
            ))}
          </select>
        </span>
      )}
    </span>
  )
}
