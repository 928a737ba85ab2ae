import { Database } from 'bun:sqlite'
import { AppError, StartError } from '../lib/errors.ts'
import { visibleControls } from '../lib/text.ts'
import { build } from '../version.ts'
import { type Command, refuseArguments, type Terminal, wrongUsage } from './terminal.ts'

const usages: Record<string, string> = {
  serve: `  serve                                     serve until SIGTERM (the default)`,
  standby: `  standby                                   follow the leader, and take over when it is gone
                                            (REPLICA_S3_URL)`,
  'hand-over': `  hand-over                                 on the leader: let the standby take over now and stop
                                            this server`,
  replica: `  replica status [--json]                   show the leader, the state of the bucket and of this
                                            machine, and what can be restored
  replica init [--pair true|false]          begin the log in an empty bucket, or change whether a standby
               [--lease SECONDS] [--force]  may take over and after which silence (--force: replace the
                                            log by the database here)
  replica snapshot                          take a snapshot now
  replica verify [--json]                   restore into a temporary directory, and check the result`,
  user: `  user create --email E --role R            create an account with a verified address
              [--password-stdin]            (without it, generates a password and shows it once)
  user role E R                             guest, user, verified_user, host or admin
  user show E [--json]                      show the account and the last mails and pushes to it;
                                            E is an address or an id
  user sessions E [--json]                  list its logins; user logout E ends them all
  user verify E                             mark the e-mail address as verified; an account that
                                            never was loses its password and logins
  user disable E                            disable the account; user enable E enables it again
  user delete E                             delete it; messages stay, shown as from a deleted user
  user purge E [--dry-run]                  delete it with its messages, tickets, files and reports
  user reset E                              mail a link for a new password
  user totp-off E                           remove a second factor that was lost
  user list [--json]                        list id, e-mail, role and state of every account`,
  keys: `  keys list [--json]                        list the keys that sign access tokens
  keys rotate [--now]                       change to the next key; nobody is logged out
                                            (--now, after a leak: withdraw the old keys at once)`,
  'service-key': `  service-key create --name N --scope S     create a key for another part of the platform, shown
              [--expires 90d]               once; scopes: notifications, follows, calls, users,
                                            messages, sessions, messages_as; all: but the last two
  service-key list [--json]                 list every key with its expiry and last use
  service-key revoke ID                     revoke a key`,
  ban: `  ban add KIND VALUE [--reason R]           refuse registration and login; the kinds are mail_domain,
          [--until TIME]                    address and network
  ban list [--json]                         list the bans; ban remove KIND VALUE removes one`,
  audit: `  audit [--user E] [--action A]             list entries of the audit log
        [--since TIME] [--json]`,
  webhook: `  webhook create --url U --events a,b       send events to an endpoint; shows its secret once
                 [--description …]
  webhook list [--json]                     list every webhook, and since when it fails or is off
  webhook test ID                           send it a signed request now
  webhook delete ID                         delete it`,
  settings: `  settings list [--json]                    list the settings of the platform
  settings set KEY VALUE                    change one; '' is its default`,
  retention: `  retention --dry-run                       show how many messages and tickets the next run of
                                            retention deletes`,
  jobs: `  jobs list [--dead] [--json]               list waiting and dead jobs, such as mails and pushes
  jobs retry ID                             retry a job now (--all: all dead jobs)
  jobs discard ID                           discard a job (--all: all dead jobs)`,
  backup: `  backup FILE                               copy the database, also while the server runs
  backup DIR [--keep 7]                     the same with a dated name; keeps the newest, also in the
                                            bucket of BACKUP_S3_URL
  backup DIR --fetch NAME                   get a backup from that bucket (or the newest)`,
  restore: `  restore FILE [--force]                    replace the database by a backup
  restore s3 [--at TIME] [--force]          the same from the bucket of REPLICA_S3_URL: the newest
                                            state, or that of a time (2026-11-22T10:00:00Z)
  restore s3 --list                         show which times can be restored
                                            (--force: replace a database, and keep it aside)`,
  check: `  check [--json]                            check configuration, database, disk, mail, push and
                                            replication`,
  health: `  health                                    check the health of the server on this machine, for
                                            containers (exit code 1: unhealthy)`,
  openapi: `  openapi                                   print the API description`,
  version: `  version                                   print the version and the commit of the build`,
  help: `  help [COMMAND]                            print this help, or the part about one command`,
}

const help = (
  parts: string,
) => `hostline ${build}: messaging, accounts, support and notifications in one executable

usage: hostline [command]

${parts}

Everything is configured by environment variables; see the README. --env-file FILE reads them from the file of a systemd unit.
Exit codes: 0 done, 1 failed, 2 wrong usage.`

function showHelp([name, ...rest]: string[], { out }: Terminal): void {
  refuseArguments(rest)
  if (name !== undefined && !Object.hasOwn(usages, name)) {
    throw wrongUsage(`there is no command "${name}"`)
  }
  out(help(usages[name ?? ''] ?? Object.values(usages).join('\n')))
}

// Each command imports its code on demand, so that `hostline version` does not load the server.
const commands: Record<string, () => Promise<Command>> = {
  serve: async () => (await import('./serve.ts')).serveUntilSignal,
  standby: async () => (await import('./serve.ts')).standby,
  'hand-over': async () => (await import('./replica.ts')).handOver,
  replica: async () => (await import('./replica.ts')).replica,
  user: async () => (await import('./user.ts')).user,
  keys: async () => (await import('./keys.ts')).keys,
  'service-key': async () => (await import('./service-key.ts')).serviceKey,
  ban: async () => (await import('./ban.ts')).ban,
  audit: async () => (await import('./audit.ts')).audit,
  webhook: async () => (await import('./webhook.ts')).webhook,
  settings: async () => (await import('./settings.ts')).settings,
  retention: async () => (await import('./settings.ts')).retention,
  jobs: async () => (await import('./jobs.ts')).jobs,
  backup: async () => (await import('./backup.ts')).backup,
  restore: async () => (await import('./backup.ts')).restore,
  check: async () => (await import('./check.ts')).check,
  health: async () => (await import('./health.ts')).health,
  openapi: async () => (await import('./serve.ts')).openapi,
  version:
    async () =>
    (args, { out }) => {
      refuseArguments(args)
      out(build)
    },
  help: async () => showHelp,
}

const withoutDatabase = ['help', 'version', 'health']
export const leastSqliteVersion = '3.53.0'

const aliases = new Map(Object.entries({ '--help': 'help', '-h': 'help', '--version': 'version' }))

/** @returns the exit code: 0, 1 (failed, one line on stderr) or 2 (wrong usage) */
export async function run(given: string[], { out, err, ...others }: Terminal): Promise<number> {
  const shell: Terminal = {
    ...others,
    out: (line) => out(visibleControls(line)),
    err: (line) => err(visibleControls(line)),
  }
  let terminal = shell
  try {
    const { argv, path } = takeEnvironmentFile(given)
    if (path !== undefined) {
      const { runWithAuthority, withEnvironmentFile } = await import('./env-file.ts')
      terminal = withEnvironmentFile(shell, path)
      const exitCode = await runWithAuthority(argv, terminal, shell)
      if (exitCode !== undefined) return exitCode
    }
    const [first = 'serve', ...args] = argv
    const name = aliases.get(first) ?? first
    const load = Object.hasOwn(commands, name) ? commands[name] : undefined
    if (!load) throw wrongUsage(`there is no command "${first}"`)
    if (args.some((arg) => aliases.get(arg) === 'help')) showHelp([name], terminal)
    else {
      mustSuit(name, terminal)
      const command = await load()
      await command(args, terminal)
    }
    return 0
  } catch (error) {
    terminal.err(await explain(error))
    return error instanceof StartError ? error.exitCode : 1
  }
}

function takeEnvironmentFile(argv: string[]) {
  const at = argv.findIndex((arg) => /^--env-file(=|$)/.test(arg))
  if (at < 0) return { argv, path: undefined }
  const [, attached] = argv[at]?.split(/=(.*)/s) ?? []
  const path = attached ?? argv[at + 1]
  if (!path) throw wrongUsage('--env-file needs a file')
  return { argv: argv.toSpliced(at, attached === undefined ? 2 : 1), path }
}

/** @throws StartError for an SQLite that cannot change constraints in place, as migrations do (3.53), or that may lose commits
 *  (before 3.51.3: https://www.sqlite.org/wal.html#walresetbug) */
function mustSuit(command: string, terminal: Terminal): void {
  if (withoutDatabase.includes(command)) return
  const { sqliteVersion = findSqliteVersion() } = terminal
  if (Bun.semver.order(sqliteVersion, leastSqliteVersion) >= 0) return
  throw new StartError(
    `SQLite ${sqliteVersion} is too old: ${leastSqliteVersion} or newer is required (docs/operations.md, Install)`,
  )
}

function findSqliteVersion(): string {
  using sqlite = new Database(':memory:')
  const [row] = sqlite.query<{ version: string }, []>('SELECT sqlite_version() AS version').all()
  return row?.version ?? '0'
}

async function explain(error: unknown) {
  // The write of the keys in a first start may be refused.
  if (error instanceof AppError) return `hostline: ${error.message}: ${error.cause}`
  if (error instanceof StartError) return error.message.replace(/^/gm, 'hostline: ')
  const { code, syscall } = Object(error) as { code?: unknown; syscall?: unknown }
  if (typeof code === 'string' && /^(SQLITE_|ENOSPC$)/.test(code)) {
    const { explainFailure } = await import('../db/open.ts')
    return `hostline: the database cannot be used: ${explainFailure(error)}`
  }
  // The operating system refused a file that the operator named. The message has its path.
  if (syscall !== undefined) return `hostline: ${(error as Error).message}`
  return `hostline: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`
}
