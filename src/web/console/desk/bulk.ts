import { useRef, useState } from 'preact/hooks'
import type { DeskTicketListItem } from '../../../../client/src/client.ts'
import { ApiError } from '../../../../client/src/errors.ts'
import { errorText } from '../../ui/errors.ts'
import { type Change, changeTicket } from './change.ts'

type Failed = { ticket: DeskTicketListItem; why: string }
type Outcome = { failed: Failed[]; left: DeskTicketListItem[] }
export type Run = { change: Change; done: number; total: number; failed: Failed[]; isOver: boolean }

export type Bulk = ReturnType<typeof useBulk>

/** Changes several tickets one after the other and collects the failures.
 *  @param onChanged called with each changed ticket */
export function useBulk(onChanged: (ticket: DeskTicketListItem) => void) {
  const [run, setRun] = useState<Run>()
  const stopping = useRef<AbortController>(undefined)

  /** @returns the failures and, after a stop, the tickets that were not tried */
  async function start(tickets: DeskTicketListItem[], change: Change): Promise<Outcome> {
    const failed: Failed[] = []
    let done = 0
    stopping.current = new AbortController()
    const { signal } = stopping.current
    for (const ticket of tickets) {
      setRun({ change, done, total: tickets.length, failed, isOver: false })
      const why = await tryChange(ticket, { change, onChanged, signal })
      if (why === 'stopped') break
      if (why) failed.push({ ticket, why: why.text })
      done++
    }
    setRun(failed.length > 0 ? overOf(change, tickets.length, failed) : undefined)
    return { failed, left: tickets.slice(done) }
  }

  return {
    run,
    start,
    stop: () => stopping.current?.abort(),
    dismiss: () => setRun(undefined),
  }
}

const overOf = (change: Change, total: number, failed: Failed[]): Run => ({
  change,
  done: total,
  total,
  failed,
  isOver: true,
})

type Try = {
  change: Change
  onChanged: (ticket: DeskTicketListItem) => void
  signal: AbortSignal
}

/** @returns the error, or undefined on success */
async function tryChange(
  { id }: DeskTicketListItem,
  { change, onChanged, signal }: Try,
): Promise<{ text: string } | 'stopped' | undefined> {
  while (!signal.aborted) {
    try {
      return void onChanged(await changeTicket(id, change))
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'rate_limited') return errorText(error)
      await pause(error.retryAfterSeconds ?? 1, signal)
    }
  }
  return 'stopped'
}

/** Waits, or returns early when the signal is aborted. */
const pause = (seconds: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    setTimeout(resolve, seconds * 1_000)
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
