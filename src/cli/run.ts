import { version } from '../../package.json' with { type: 'json' }
import { AppError, StartError } from '../lib/errors.ts'
import { type Terminal, wrongUsage } from './terminal.ts'

const help = `hostline ${version}: messaging, accounts, support and notifications in one executable

usage: hostline [command]

  serve                                     serve until SIGTERM (the default)
  user create --email E --role R            make an account that counts as verified
              [--password-stdin]            (without it a password is made and shown once)
  user role E R                             guest, user, verified_user, host or admin
  user verify E                             count the e-mail address as verified
  user disable E                            shut the account out; user enable E lets it in again
  user list                                 id, e-mail, role, state of every account
  keys list                                 the keys that access tokens are signed with
  keys rotate [--now]                       go over to the next key; nobody is logged out
  service-key create --name N --scope S     make a key for another part of the platform, shown once;
              [--expires 90d]               scopes: notifications, follows, calls, users, all
  service-key list
  service-key revoke ID
  notify --email E --type T                 notify somebody; the type is one of those of the API
         [--title … --body … --data JSON]
  check                                     configuration, database, disk, mail, push
  openapi                                   print the API description
  version, help

Everything is configured by environment variables; see the README.
Exit codes: 0 done, 1 failed, 2 wrong usage.`

type Command = (args: string[], terminal: Terminal) => void | Promise<void>

// Each loads its code when it is called: `hostline version` does not wait for that of the server.
const commands: Record<string, () => Promise<Command>> = {
  serve: async () => (await import('./serve.ts')).serveUntilSignal,
  user: async () => (await import('./user.ts')).user,
  keys: async () => (await import('./keys.ts')).keys,
  'service-key': async () => (await import('./service-key.ts')).serviceKey,
  notify: async () => (await import('./notify.ts')).notify,
  check: async () => (await import('./check.ts')).check,
  openapi: async () => (await import('./serve.ts')).openapi,
  version:
    async () =>
    (_args, { out }) =>
      out(version),
  help:
    async () =>
    (_args, { out }) =>
      out(help),
}

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
    const command = await load()
    await command(args, terminal)
    return 0
  } catch (error) {
    terminal.err(explain(error))
    return error instanceof StartError ? error.exitCode : 1
  }
}

function explain(error: unknown) {
  if (error instanceof StartError || error instanceof AppError) {
    return error.message.replace(/^/gm, 'hostline: ')
  }
  return `hostline: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`
}
