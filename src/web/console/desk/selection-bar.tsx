import { X } from 'lucide-preact'
import { confirmAction } from '../../ui/dialog.tsx'
import { count } from '../../ui/format.ts'
import { useShortcut } from '../../ui/shortcuts.tsx'
import { toast } from '../../ui/toast.tsx'
import { user } from '../session.ts'
import type { Bulk, Run } from './bulk.ts'
import type { Change } from './change.ts'
import { ChangeShortcuts } from './change-shortcuts.tsx'
import type { Selection } from './selection.ts'
import { priorities, priorityNames, type Status, statuses, statusNames } from './words.ts'

type BarProps = { selection: Selection; bulk: Bulk }

export function SelectionBar({ selection, bulk }: BarProps) {
  const { tickets, keepOnly } = selection
  const { run } = bulk
  const isRunning = run !== undefined && !run.isOver

  async function apply(change: Change) {
    if (isRunning) return
    if (change.status && !(await confirmNotifying(tickets.length, change.status))) return
    const { failed, left } = await bulk.start(tickets, change)
    keepOnly([...failed.map(({ ticket }) => ticket), ...left].map(({ id }) => id))
    const changed = tickets.length - failed.length - left.length
    if (left.length > 0)
      toast(`Stopped: ${count(changed)} of ${ticketsText(tickets.length)} changed`)
    else if (failed.length === 0) toast(`${ticketsText(changed)} changed`)
  }

  function clear() {
    if (isRunning) return bulk.stop()
    bulk.dismiss()
    keepOnly([])
  }
  useShortcut('Escape', 'Clear the selection', clear)

  return (
    <section class="selection" aria-label="Selected tickets">
      {tickets.length > 0 && <ChangeShortcuts apply={apply} />}
      <div class="row between">
        <p class="small number" role="status">
          {isRunning
            ? `Changing ${count(run.done + 1)} of ${count(run.total)}…`
            : `${ticketsText(tickets.length)} selected`}
        </p>
        {isRunning ? (
          <button type="button" class="button ghost" onClick={bulk.stop}>
            Stop
          </button>
        ) : (
          <button
            type="button"
            class="button ghost icon"
            aria-label="Clear the selection"
            title="Clear the selection"
            onClick={clear}
          >
            <X />
          </button>
        )}
      </div>
      {run?.isOver && <Failed run={run} />}
      <Changes isBusy={isRunning || tickets.length === 0} apply={apply} />
    </section>
  )
}

function Changes({ isBusy, apply }: { isBusy: boolean; apply: (change: Change) => void }) {
  return (
    <div class="changes">
      <button
        type="button"
        class="button"
        disabled={isBusy}
        onClick={() => apply({ assignee_id: user.value?.id ?? null })}
      >
        Assign to me
      </button>
      <Choice
        label="Set status"
        name="Status…"
        isBusy={isBusy}
        options={statuses.map((value) => [value, statusNames[value]])}
        choose={(status) => apply({ status })}
      />
      <Choice
        label="Set priority"
        name="Priority…"
        isBusy={isBusy}
        options={priorities.map((value) => [value, priorityNames[value]])}
        choose={(priority) => apply({ priority })}
      />
    </div>
  )
}

type ChoiceProps<T> = {
  label: string
  name: string
  isBusy: boolean
  options: [value: T, text: string][]
  choose: (value: T) => void
}

function Choice<T extends string>({ label, name, isBusy, options, choose }: ChoiceProps<T>) {
  return (
    <select
      aria-label={label}
      disabled={isBusy}
      value=""
      onChange={(event) => {
        const chosen = options.find(([value]) => value === event.currentTarget.value)
        event.currentTarget.value = ''
        if (chosen) choose(chosen[0])
      }}
    >
      <option value="">{name}</option>
      {options.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  )
}

function Failed({ run }: { run: Run }) {
  return (
    <div class="error" role="alert">
      <p>
        {run.failed.length} of {run.total} could not be changed and stay selected:
      </p>
      <ul>
        {run.failed.map(({ ticket, why }) => (
          <li key={ticket.id}>
            {ticket.subject}: {why}
          </li>
        ))}
      </ul>
    </div>
  )
}

const ticketsText = (amount: number) => (amount === 1 ? '1 ticket' : `${count(amount)} tickets`)

/** Owners get a mail for each resolved ticket, so ask before many are sent. */
async function confirmNotifying(amount: number, status: Status): Promise<boolean> {
  if (amount < 2 || status !== 'resolved') return true
  return confirmAction({
    title: `Resolve ${ticketsText(amount)}?`,
    text: 'Everybody who opened one of them is notified.',
    action: 'Resolve',
  })
}
