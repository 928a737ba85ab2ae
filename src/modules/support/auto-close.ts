import type { Write } from '../../db/writer.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { Announcements } from './announcements.ts'
import type { DeskItem, DeskStore } from './desk-store.ts'
import type { TicketStore } from './store.ts'
import type { TicketChangesMaker } from './ticket-changes.ts'

const day = 86_400_000
const everyMilliseconds = 600_000
/** Tickets in one transaction: short enough for the loop. */
const part = 2

type AutoCloseOptions = {
  store: TicketStore
  desk: Pick<DeskStore, 'get'>
  changes: TicketChangesMaker
  announce: Announcements
  write: Write
  clock: Clock
  log: Log
  /** Of silence, after which a resolved ticket closes; 0 is never. */
  days: number
}

/** Closes resolved tickets in which nobody wrote for some days, in small parts (decisions 7).
 *  @returns how to stop */
export function startAutoClose(options: AutoCloseOptions): () => void {
  const { store, desk, changes, announce, write, clock, log, days } = options
  let isStopped = false
  if (days === 0) return () => {}

  // Asked and changed in one write: an answer in between keeps its ticket open.
  function closeSome(): DeskItem[] {
    const silent = store.listSilent(clock.now() - days * day, part)
    return silent.map((ticket) => {
      changes.change(ticket, { status: 'closed' }, null)
      return desk.get(ticket.id)
    })
  }

  async function run() {
    let closed: DeskItem[] = []
    do {
      closed = await write(closeSome)
      for (const item of closed) announce.updated(item)
    } while (!isStopped && closed.length === part)
  }

  const stop = clock.every(everyMilliseconds, () => {
    run().catch((error: unknown) =>
      log.warn('tickets could not be closed, which is tried again', { error }),
    )
  })
  return () => {
    isStopped = true
    stop()
  }
}
