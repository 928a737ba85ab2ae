import { useRef, useState } from 'preact/hooks'
import type { DeskTicketListItem } from '../../../../client/src/client.ts'
import { ApiError } from '../../../../client/src/errors.ts'
import { errorText } from '../../ui/errors.ts'
import { type Change, changeTicket } from './change.ts'

type Failed = { ticket: DeskTicketListItem; why: string }
export type Run = { change: Change; done: number; total: number; failed: Failed[]; isOver: boolean }

/** Changes several tickets, one after the other, and keeps what failed.
 *  @param onChanged is told of each ticket as it is then */
export function useBulk(onChanged: (ticket: DeskTicketListItem) => void) {
  const [run, setRun] = useState<Run>()
  const isStopped = useRef(false)

  async function start(tickets: DeskTicketListItem[], change: Change): Promise<Failed[]> {
    const failed: Failed[] = []
    isStopped.current = false
    for (const [done, ticket] of tickets.entries()) {
      if (isStopped.current) break
      setRun({ change, done, total: tickets.length, failed, isOver: false })
      const why = await tryChange(ticket, change, onChanged)
      if (why !== undefined) failed.push({ ticket, why })
    }
    setRun(failed.length > 0 ? overOf(change, tickets.length, failed) : undefined)
    return failed
  }

  return {
    run,
    start,
    stop: () => {
      isStopped.current = true
    },
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

/** @returns why it failed; undefined when it did not */
async function tryChange(
  ticket: DeskTicketListItem,
  change: Change,
  onChanged: (ticket: DeskTicketListItem) => void,
): Promise<string | undefined> {
  for (;;) {
    try {
      onChanged(await changeTicket(ticket.id, change))
      return undefined
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'rate_limited')
        return errorText(error).text
      await pause(error.retryAfterSeconds ?? 1)
    }
  }
}

const pause = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1_000))
