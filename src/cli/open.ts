import { readConfig } from '../config.ts'
import type { Core } from '../core.ts'
import { createAuditTrail } from '../db/audit-trail.ts'
import { openForCommand } from '../db/open.ts'
import { createOutbox } from '../jobs/outbox.ts'
import { systemClock as clock } from '../lib/clock.ts'
import { createEvents } from '../lib/events.ts'
import { createIds } from '../lib/ids.ts'
import { createLog } from '../lib/log.ts'
import { createWebhookStore } from '../modules/webhooks/store.ts'
import { subscribeWebhooks } from '../modules/webhooks/subscriptions.ts'
import { createHub } from '../realtime/hub.ts'
import type { Terminal } from './terminal.ts'

/** Who the audit log names for what a command did. */
export const commandLine = { actor: { type: 'command_line' } } as const

/** Opens the data directory for one command, beside a running server or alone, and closes it afterwards. Nothing follows
 *  a commit here: a running server notices it by itself within two seconds. */
export async function withCore(
  terminal: Terminal,
  work: (core: Core) => void | Promise<void>,
): Promise<void> {
  const config = readConfig(terminal.environment, terminal.isInteractive)
  const { orm, sqlite, close } = openForCommand(config.dataDir)
  const newId = createIds(clock)
  const afterCommit = () => {}
  const core: Core = {
    config,
    orm,
    write: async (act) => sqlite.transaction(act).immediate(),
    afterCommit,
    newId,
    clock,
    log: terminalLog(terminal),
    hub: createHub(),
    outbox: createOutbox({ orm, newId, clock, afterCommit }),
    audit: createAuditTrail(orm, newId, clock),
    events: createEvents(),
  }
  try {
    // What a command does is told to endpoints by the running server, or the next one.
    subscribeWebhooks(core, createWebhookStore(orm))
    await work(core)
  } finally {
    close()
  }
}

/** What goes wrong beside the work of a command. */
export function terminalLog({ err }: Terminal) {
  const write = (line: string) => err(line.trimEnd())
  return createLog({ level: 'error', format: 'pretty', now: Date.now, write })
}
