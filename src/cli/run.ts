import { AppError, StartError } from '../lib/errors.ts'
import { version } from '../serve.ts'
import { check } from './check.ts'
import { keys } from './keys.ts'
import { notify } from './notify.ts'
import { openapi } from './openapi.ts'
import { serveUntilSignal } from './serve.ts'
import { serviceKey } from './service-key.ts'
import type { Terminal } from './terminal.ts'
import { wrongUsage } from './usage.ts'
import { user } from './user.ts'

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
  service-key create --name N [--scope S]   make a key for another part of the platform, shown once;
                                            scopes: notifications, follows, calls, users (default: all)
  service-key list
  service-key revoke ID
  notify --email E --type T                 notify somebody; the type is one of those of the API
         [--title … --body … --data JSON]
  check                                     configuration, database, disk, mail, push
  openapi                                   print the API description
  version, help

Everything is configured by environment variables; see the README.
Exit codes: 0 done, 1 failed, 2 wrong usage.`

const commands: Record<string, (args: string[], terminal: Terminal) => Promise<void>> = {
  serve: serveUntilSignal,
  user,
  keys,
  'service-key': serviceKey,
  notify,
  check,
  openapi,
  version: async (_args, { out }) => out(version),
  help: async (_args, { out }) => out(help),
}

const sameAs: Record<string, string> = { '--help': 'help', '-h': 'help', '--version': 'version' }

/** Runs one command (decisions 12).
 *  @returns the exit code: 0, 1 (failed, one line on stderr) or 2 (wrong usage) */
export async function run(argv: string[], terminal: Terminal): Promise<number> {
  const [first = 'serve', ...args] = argv
  const command = commands[sameAs[first] ?? first]
  try {
    if (!command) throw wrongUsage(`there is no command "${first}"`)
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
