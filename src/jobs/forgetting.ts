import type { Core } from '../core.ts'
import { inPieces } from '../db/pieces.ts'
import { createShrinking } from '../db/shrinking.ts'
import { day, minute } from '../lib/clock.ts'

type Progress = { count: number; last: string }

export type Aging = {
  /** Deletes some of what is from before a time, inside a `write`. Undefined when nothing is left. */
  forget: (before: number, limit: number, done: Progress) => Progress | undefined
  /** Counts what a run would delete and what open reports keep, in parts. */
  survey: (before: number) => Iterable<{ due: number; held: number }>
}

type Agings = { messages: Aging; tickets: Aging }
type Kind = keyof Agings
const retentionSettings = {
  messages: 'message_retention_days',
  tickets: 'ticket_retention_days',
} as const

/** Rows per write: about a millisecond, also when each is in a conversation of its own. */
const forgottenPerWrite = 10
/** Between writes, so that requests, readers and replication are not delayed. */
const restMilliseconds = 5
const checkMilliseconds = minute
const runsAtHour = 3

export type RetentionSurvey = ReturnType<typeof createForgetting>['survey']

/** Runs once a day, and after a start when a day was missed. An interrupted run is repeated. */
export function createForgetting(core: Core, agings: Agings) {
  const { settings, orm, write, audit, clock, log } = core
  const shrink = createShrinking(orm, write)
  const daysOf = (kind: Kind) => settings.get(retentionSettings[kind])
  const before = (kind: Kind) => clock.now() - daysOf(kind) * day
  const isOn = () => daysOf('messages') + daysOf('tickets') > 0
  const lastRunAt = () => audit.findLatest('retention_run')?.at

  // A setting that was changed since the last due time waits for the next run.
  function isDue() {
    const now = clock.now()
    const changedAt = audit.findLatest('setting_changed', Object.values(retentionSettings))?.at ?? 0
    // Times more than a day ahead are from before the clock was set back.
    const known = [lastRunAt() ?? 0, changedAt].filter((at) => at <= now + day)
    return isOn() && runBefore(now) > Math.max(0, ...known)
  }

  async function forget(kind: Kind, isStopping: () => boolean): Promise<number> {
    const until = before(kind)
    // The setting may be raised or switched off during a run. A lowered one waits for the next run.
    const next = (limit: number, done: Progress = { count: 0, last: '' }) => {
      if (daysOf(kind) === 0) return undefined
      return agings[kind].forget(Math.min(until, before(kind)), limit, done)
    }
    const options = { size: forgottenPerWrite, restMilliseconds, isStopping }
    const done = await inPieces(write, next, options)
    return done?.count ?? 0
  }

  async function run(isStopping: () => boolean) {
    const messages = await forget('messages', isStopping)
    const tickets = await forget('tickets', isStopping)
    if (isStopping()) return
    const details = { messages: String(messages), tickets: String(tickets) }
    await write(() => {
      audit.record({ action: 'retention_run', actor: { type: 'system' }, details })
    })
    log.info('retention has run', details)
  }

  async function survey(kind: Kind) {
    const found = { days: daysOf(kind), due: 0, held: 0 }
    if (found.days === 0) return found
    for (const { due, held } of agings[kind].survey(before(kind))) {
      found.due += due
      found.held += held
      await Bun.sleep(0)
    }
    return found
  }

  return {
    start(): () => void {
      let isStopped = false
      let isRunning = false
      const isStopping = () => isStopped
      async function work() {
        isRunning = true
        try {
          if (isDue()) await run(isStopping)
          await shrink(isStopping)
        } catch (error) {
          if (!isStopped) log.warn('retention failed and will be retried', { error })
        } finally {
          isRunning = false
        }
      }
      const stop = clock.every(checkMilliseconds, () => {
        if (!isRunning) void work()
      })
      return () => {
        isStopped = true
        stop()
      }
    },
    survey: async () => ({
      messages: await survey('messages'),
      tickets: await survey('tickets'),
      lastRunAt: lastRunAt(),
      nextRunAt: isOn() ? runBefore(clock.now(), 1) : undefined,
    }),
  }
}

/** The last 03:00 in the server's zone, or so many days after it. */
function runBefore(now: number, daysLater = 0): number {
  const at = new Date(now)
  const isEarly = at.setHours(runsAtHour, 0, 0, 0) > now
  at.setDate(at.getDate() + daysLater - Number(isEarly))
  // Again, because the clock may skip that hour on one of the two days.
  return at.setHours(runsAtHour, 0, 0, 0)
}
