import { X } from 'lucide-preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { DeskTicketListItem } from '../../../../client/src/client.ts'
import { Button, IconButton, useIsShown } from '../../kit/button.tsx'
import { confirmAction } from '../../kit/dialog.tsx'
import { errorText } from '../../kit/errors.ts'
import { count, plural } from '../../kit/format.ts'
import { isFocusLost } from '../../kit/kept-focus.ts'
import { Select } from '../../kit/select.tsx'
import { useShortcut } from '../../kit/shortcuts.tsx'
import { fill, texts } from '../../kit/texts.tsx'
import { toast } from '../../kit/toast.tsx'
import { oneByOne } from '../data.ts'
import { user } from '../session.ts'
import { assignable, type Change, changeTicket, changeWithUndo, undoOf } from './ticket.ts'
import { priorities, priorityNames, type Status, statuses, statusNames } from './views.ts'

const words = texts.console.desk
const { bulk, keys } = words

export type Selection = {
  tickets: DeskTicketListItem[]
  has: (id: string) => boolean
  /** @param isRange selects all tickets between the last selected one and this */
  toggle: (id: string, isRange?: boolean) => void
  keepOnly: (ids: string[]) => void
}

/** The selected tickets of a list. A ticket that leaves the list is no longer selected. */
export function useSelection(items: DeskTicketListItem[]): Selection {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set())
  const last = useRef<string>(undefined)
  const tickets = items.filter(({ id }) => ids.has(id))
  useEffect(() => {
    if (tickets.length < ids.size) setIds(new Set(tickets.map(({ id }) => id)))
  }, [tickets.length, ids.size])

  function rangeTo(id: string): string[] {
    const ends = [last.current, id].map((end) => items.findIndex((item) => item.id === end))
    const [from = -1, to = -1] = ends.sort((a, b) => a - b)
    return from < 0 ? [id] : items.slice(from, to + 1).map((item) => item.id)
  }

  function toggle(id: string, isRange = false) {
    const changed = new Set(ids)
    if (isRange) for (const one of rangeTo(id)) changed.add(one)
    else if (!changed.delete(id)) changed.add(id)
    last.current = id
    setIds(changed)
  }

  return {
    tickets,
    has: (id) => ids.has(id),
    toggle,
    keepOnly: (kept) => setIds(new Set(kept)),
  }
}

type Failed = { ticket: DeskTicketListItem; why: string }
type Run = { total: number; done: number; failed: Failed[]; isOver: boolean }
type Step = { ticket: DeskTicketListItem; change: Change }

/** Changes several tickets one after the other and collects the failures. */
function useRun() {
  const [run, setRun] = useState<Run>()
  const isShown = useIsShown()
  const stopping = useRef<AbortController>(undefined)

  /** @returns the failures and, after a stop, the steps that were not tried */
  async function start(steps: Step[]) {
    const failed: Failed[] = []
    let done = 0
    stopping.current = new AbortController()
    const { signal } = stopping.current
    for (const step of steps) {
      if (signal.aborted) break
      setRun({ total: steps.length, done, failed, isOver: false })
      const why = await tryStep(step, signal)
      if (why !== undefined) failed.push({ ticket: step.ticket, why })
      done++
    }
    if (!isShown.current) sayFailed(failed.length, steps.length)
    setRun(failed.length > 0 ? { total: steps.length, done, failed, isOver: true } : undefined)
    return { failed, left: steps.slice(done) }
  }

  return { run, start, stop: () => stopping.current?.abort(), dismiss: () => setRun(undefined) }
}

/** For somebody who has left the desk. */
function sayFailed(failed: number, all: number) {
  if (failed > 0) toast(fill(bulk.notChanged, { failed: count(failed), count: count(all) }))
}

/** @returns the error, or undefined on success */
async function tryStep({ ticket, change }: Step, signal: AbortSignal): Promise<string | undefined> {
  try {
    await oneByOne(() => changeTicket(ticket.id, change), signal)
    return undefined
  } catch (error) {
    return errorText(error).text
  }
}

export function SelectionBar({ selection }: { selection: Selection }) {
  const { tickets, keepOnly } = selection
  const { run, start, stop, dismiss } = useRun()
  const isRunning = run !== undefined && !run.isOver
  useFocusAfter(tickets[0]?.id, isRunning)

  async function apply(change: Change) {
    if (isRunning) return
    if (change.status && !(await confirmStatus(tickets.length, change.status))) return
    if (tickets.length === 1 && change.status === 'resolved') return resolveOne(change)
    await changeAll(change)
  }

  /** With an undo: the customer's notice is held until then. */
  async function resolveOne(change: Change) {
    for (const ticket of tickets) if (await changeWithUndo(ticket, change)) keepOnly([])
  }

  async function changeAll(change: Change) {
    const { failed, left } = await start(tickets.map((ticket) => ({ ticket, change })))
    const others = [...failed, ...left].map(({ ticket }) => ticket.id)
    keepOnly(others)
    const changed = tickets.filter(({ id }) => !others.includes(id))
    const undo = {
      label: words.undo,
      work: () => void start(changed.map((ticket) => ({ ticket, change: undoOf(ticket, change) }))),
    }
    const offered = change.status === 'resolved' ? {} : { undo }
    if (left.length > 0) {
      toast(
        fill(bulk.stopped, { changed: count(changed.length), count: count(tickets.length) }),
        offered,
      )
    } else if (failed.length === 0) toast(plural(bulk.changed, changed.length), offered)
  }

  function clear() {
    if (isRunning) return stop()
    dismiss()
    keepOnly([])
  }

  if (tickets.length === 0 && !run) return null
  return (
    <section class="selection stack tight" aria-label={bulk.label}>
      <ClearShortcut clear={clear} />
      {tickets.length > 0 && <ChangeShortcuts apply={apply} />}
      <div class="row between">
        <p class="small number" role="status">
          {isRunning
            ? fill(bulk.changing, { at: count(run.done + 1), count: count(run.total) })
            : plural(bulk.selected, tickets.length)}
        </p>
        {isRunning ? (
          <Button tone="ghost" onClick={stop}>
            {bulk.stop}
          </Button>
        ) : (
          <IconButton icon={X} label={bulk.clear} onClick={clear} />
        )}
      </div>
      {run?.isOver && (
        <div class="error" role="alert">
          <p>{fill(bulk.failed, { failed: count(run.failed.length), count: count(run.total) })}</p>
          <ul>
            {run.failed.map(({ ticket, why }) => (
              <li key={ticket.id}>
                {ticket.subject}: {why}
              </li>
            ))}
          </ul>
        </div>
      )}
      <Changes isBusy={isRunning || tickets.length === 0} apply={apply} />
    </section>
  )
}

/** The button that had the focus goes with the selection or the run. */
function useFocusAfter(firstId: string | undefined, isRunning: boolean) {
  const before = useRef<{ firstId: string | undefined; isRunning: boolean }>(undefined)
  useEffect(() => {
    const left = before.current
    before.current = { firstId, isRunning }
    const isGone = left?.firstId !== undefined && firstId === undefined
    const isOver = left?.isRunning === true && !isRunning
    if (!(isGone || isOver) || !isFocusLost()) return
    const row = document.querySelector<HTMLElement>(`[data-id="${left?.firstId}"] a`)
    ;(row ?? document.querySelector<HTMLElement>('.list-pane .virtual'))?.focus()
  }, [firstId, isRunning])
}

function ClearShortcut({ clear }: { clear: () => void }) {
  useShortcut('Escape', bulk.clear, clear)
  return null
}

function Changes({ isBusy, apply }: { isBusy: boolean; apply: (change: Change) => void }) {
  return (
    <div class="changes">
      <Select
        label={bulk.assign}
        text={bulk.assignMenu}
        value={undefined}
        isBusy={isBusy}
        options={[...assignable(null), ['', words.nobody]]}
        choose={(id) => apply({ assignee_id: id || null })}
      />
      <Select
        label={bulk.setStatus}
        text={bulk.statusMenu}
        value={undefined}
        isBusy={isBusy}
        options={statuses.map((value) => [value, statusNames[value]])}
        choose={(status) => apply({ status })}
      />
      <Select
        label={bulk.setPriority}
        text={bulk.priorityMenu}
        value={undefined}
        isBusy={isBusy}
        options={priorities.map((value) => [value, priorityNames[value]])}
        choose={(priority) => apply({ priority })}
      />
    </div>
  )
}

async function confirmStatus(amount: number, status: Status): Promise<boolean> {
  if (amount < 2 || (status !== 'resolved' && status !== 'closed')) return true
  const isResolve = status === 'resolved'
  return confirmAction({
    title: fill(isResolve ? bulk.resolve : bulk.close, { count: count(amount) }),
    text: isResolve ? bulk.resolveText : bulk.closeText,
    action: isResolve ? words.resolve : words.close,
  })
}

/** Shortcuts for the open ticket, or for the selected tickets. */
export function ChangeShortcuts({ apply }: { apply: (change: Change) => void }) {
  useShortcut('a', keys.assign, () => apply({ assignee_id: user.value?.id ?? null }))
  useShortcut('e', words.resolve, () => apply({ status: 'resolved' }))
  useShortcut('p', keys.progress, () => apply({ status: 'in_progress' }))
  useShortcut('c', words.close, () => apply({ status: 'closed' }))
  useShortcut('1', keys.low, () => apply({ priority: 'low' }))
  useShortcut('2', keys.normal, () => apply({ priority: 'normal' }))
  useShortcut('3', keys.high, () => apply({ priority: 'high' }))
  useShortcut('4', keys.urgent, () => apply({ priority: 'urgent' }))
  return null
}
