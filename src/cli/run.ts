import { Database } from 'bun:sqlite'
import { version } from '../../package.json' with { type: 'json' }
import { AppError, StartError } from '../lib/errors.ts'
import { refuseArguments, type Terminal, wrongUsage } from './terminal.ts'

/** The text of `help COMMAND`, in the order of `help`. */
const usages: Record<string, string> = {
  serve: `  serve                                     serve until SIGTERM (the default)`,
  standby: `  standby                                   follow the machine that leads, and take over when it is gone
                                            (REPLICA_S3_URL; REPLICA_PAIR=true on both)`,
  'hand-over': `  hand-over                                 on the machine that leads: let the standby lead now;
                                            this server ends`,
  replica: `  replica status [--json]                   who leads, how far the bucket is, what can be restored,
                                            and what this machine is
  replica init                              begin the log in an empty bucket with the database here`,
  user: `  user create --email E --role R            make an account that counts as verified
              [--password-stdin]            (without it a password is made and shown once)
  user role E R                             guest, user, verified_user, host or admin
  user verify E                             count the e-mail address as verified
  user disable E                            shut the account out; user enable E lets it in again
  user delete E                             remove it; messages stay, shown as from a deleted user
  user reset E                              mail a link to a new password
  user totp-off E                           take the second factor from who lost it and the recovery codes
  user list [--json]                        id, e-mail, role, state of every account`,
  keys: `  keys list [--json]                        the keys that access tokens are signed with
  keys rotate [--now]                       go over to the next key; nobody is logged out
                                            (--now, after a leak: the old keys end at once)`,
  'service-key': `  service-key create --name N --scope S     make a key for another part of the platform, shown once;
              [--expires 90d]               scopes: notifications, follows, calls, users, sessions, all
  service-key list [--json]                 every key, when it ends and when it was used last
  service-key revoke ID                     end a key`,
  webhook: `  webhook create --url U --events a,b       tell an endpoint what happens; shows its secret once
                 [--description …]
  webhook list [--json]                     every webhook, and since when one fails or is off
  webhook test ID                           send it a signed request now
  webhook delete ID                         remove it`,
  jobs: `  jobs list [--dead] [--json]               mails, pushes and other work that is still to be done
  jobs retry ID                             do it now (--all: everything that was given up)
  jobs discard ID                           leave it undone (--all: everything that was given up)`,
  backup: `  backup FILE                               copy the database, also beside a running server
  backup DIR [--keep 7]                     the same under a dated name; of those the newest stay`,
  restore: `  restore FILE [--force]                    put a backup in the place of the database
  restore s3 [--at TIME] [--force]          the same from the bucket of REPLICA_S3_URL: the newest
                                            state, or the one at that time (2026-11-22T10:00:00Z)
                                            (--force: what is there is kept aside)`,
  check: `  check                                     configuration, database, disk, mail, push, replication`,
  health: `  health                                    whether the server on this machine is well
                                            (exit 1: it is not; for containers)`,
  openapi: `  openapi                                   print the API description`,
  version: `  version                                   that of this executable`,
  help: `  help [COMMAND]                            this, or the part about one command`,
}

const help = (
  parts: string,
) => `hostline ${version}: messaging, accounts, support and notifications in one executable

usage: hostline [command]

${parts}

Everything is configured by environment variables; see the README.
Exit codes: 0 done, 1 failed, 2 wrong usage.`

/** @throws StartError (wrong usage) */
function showHelp([name, ...rest]: string[], { out }: Terminal): void {
  refuseArguments(rest)
  if (name !== undefined && !Object.hasOwn(usages, name)) {
    throw wrongUsage(`there is no command "${name}"`)
  }
  out(help(usages[name ?? ''] ?? Object.values(usages).join('\n')))
}

type Command = (args: string[], terminal: Terminal) => void | Promise<void>

// Each command imports its code on demand, so that `hostline version` does not load the server.
const commands: Record<string, () => Promise<Command>> = {
  serve: async () => (await import('./serve.ts')).serveUntilSignal,
  standby: async () => (await import('./serve.ts')).standby,
  'hand-over': async () => (await import('./replica.ts')).handOver,
  replica: async () => (await import('./replica.ts')).replica,
  user: async () => (await import('./user.ts')).user,
  keys: async () => (await import('./keys.ts')).keys,
  'service-key': async () => (await import('./service-key.ts')).serviceKey,
  webhook: async () => (await import('./webhook.ts')).webhook,
  jobs: async () => (await import('./jobs.ts')).jobs,
  backup: async () => (await import('./backup.ts')).backup,
  restore: async () => (await import('./backup.ts')).restore,
  check: async () => (await import('./check.ts')).check,
  health: async () => (await import('./health.ts')).health,
  openapi: async () => (await import('./serve.ts')).openapi,
  version:
    async () =>
    (_args, { out }) =>
      out(version),
  help: async () => showHelp,
}

const withoutDatabase = ['help', 'version', 'health']
const leastSqliteVersion = '3.51.3'

const aliases = new Map([
  ['--help', 'help'],
  ['-h', 'help'],
  ['--version', 'version'],
])

/** Runs one command.
 *  @returns the exit code: 0, 1 (failed, one line on stderr) or 2 (wrong usage) */
export async function run(argv: string[], terminal: Terminal): Promise<number> {
  const [first = 'serve', ...args] = argv
  const name = aliases.get(first) ?? first
  try {
    const load = Object.hasOwn(commands, name) ? commands[name] : undefined
    if (!load) throw wrongUsage(`there is no command "${first}"`)
    if (args.some((arg) => aliases.get(arg) === 'help')) showHelp([name], terminal)
    else await start(name, await load(), { args, terminal })
    return 0
  } catch (error) {
    terminal.err(explain(error))
    return error instanceof StartError ? error.exitCode : 1
  }
}

type Call = { args: string[]; terminal: Terminal }

async function start(name: string, command: Command, { args, terminal }: Call) {
  if (!withoutDatabase.includes(name)) mustBeRecent(terminal.sqliteVersion ?? findSqliteVersion())
  await command(args, terminal)
}

/** @throws StartError for an SQLite that may lose commits: https://www.sqlite.org/wal.html#walresetbug */
function mustBeRecent(sqliteVersion: string): void {
  if (Bun.semver.order(sqliteVersion, leastSqliteVersion) >= 0) return
  throw new StartError(
    `SQLite ${sqliteVersion} may lose what is committed: ${leastSqliteVersion} or newer is needed (docs/operations.md, Install)`,
  )
}

function findSqliteVersion(): string {
  const sqlite = new Database(':memory:')
  const [row] = sqlite.query<{ version: string }, []>('SELECT sqlite_version() AS version').all()
  sqlite.close()
  return row?.version ?? '0'
}

function explain(error: unknown) {
  if (error instanceof StartError || error instanceof AppError) {
    return error.message.replace(/^/gm, 'hostline: ')
  }
  return `hostline: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`
}
