import type { Static } from '@sinclair/typebox'
import { parseTime } from '../lib/clock.ts'
import { parseId } from '../lib/ids.ts'
import type { AuditEntry } from '../modules/operator/model.ts'
import en from '../web/texts/en.json' with { type: 'json' }
import { listAll, withService } from './call.ts'
import { printList, readOptions, readWord, type Terminal, wrongUsage } from './terminal.ts'
import { findUser } from './user.ts'

type Entry = Static<typeof AuditEntry>

// A test holds the texts of the console to the actions.
const actions = Object.keys(en.console.system.audit.actions)

export async function audit(args: string[], terminal: Terminal): Promise<void> {
  const { user, action, since, json } = readOptions(args, {
    user: { type: 'string' },
    action: { type: 'string' },
    since: { type: 'string' },
    json: { type: 'boolean' },
  })
  if (since !== undefined && parseTime(since) === undefined) {
    throw wrongUsage('--since needs a time such as 2026-11-22T10:00:00Z')
  }
  if (action !== undefined) readWord('action', actions, action)
  return withService(terminal, async (call) => {
    // An id may be that of a removed account.
    const id = user === undefined ? undefined : (parseId(user) ?? (await findUser(call, user)).id)
    const common = { ...(action && { action }), ...(since && { from: since }) }
    const queries = id === undefined ? [{}] : [{ actor_id: id }, { target_id: id }]
    const entries = new Map<string, Entry>()
    for (const query of queries) {
      const path = `/v1/admin/audit-log?${new URLSearchParams({ ...common, ...query })}`
      for (const entry of await listAll<Entry>(call, path)) entries.set(entry.id, entry)
    }
    const rows = [...entries.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
    const names = ['at', 'action', 'actor', 'target', 'ip', 'details'] as const
    printList(terminal, names, rows, json)
  })
}
