import { randomBytes } from 'node:crypto'
import { isoTime } from '../lib/clock.ts'
import { StartError } from '../lib/errors.ts'
import { normalizeEmail, textProblem } from '../lib/text.ts'
import { roles } from '../lib/vocabulary.ts'
import { passwordRule } from '../modules/accounts/model.ts'
import { isGuessable } from '../modules/accounts/passwords.ts'
import type { UserRow } from '../modules/accounts/store.ts'
import { createUserAdmin, type UserAdmin } from '../modules/accounts/user-admin.ts'
import { commandLine, withCore } from './open.ts'
import {
  explained,
  printList,
  readListOptions,
  readOptions,
  readWord,
  refuseArguments,
  type Terminal,
  wrongUsage,
} from './terminal.ts'

const actions = 'create, role, verify, disable, enable, delete, reset, totp-off or list'

type Changes = Parameters<UserAdmin['update']>[1]

const changesOf = new Map<string, Changes>([
  ['verify', { emailVerified: true }],
  ['disable', { disabled: true }],
  ['enable', { disabled: false }],
])

/** `hostline user …`: accounts, beside a running server or without one. */
export async function user([action = '', ...args]: string[], terminal: Terminal): Promise<void> {
  if (action === 'create') return create(args, terminal)
  if (action === 'list') return list(args, terminal)
  const [email = '', ...words] = args
  if (action === 'role') {
    refuseArguments(words.slice(1))
    return change(email, { role: readWord('role', roles, words[0]) }, terminal)
  }
  refuseArguments(words)
  if (isAct(action)) return act(action, email, terminal)
  const changes = changesOf.get(action)
  if (!changes) throw wrongUsage(`user ${actions}`)
  return change(email, changes, terminal)
}

async function create(args: string[], terminal: Terminal) {
  const values = readOptions(args, {
    email: { type: 'string' },
    role: { type: 'string' },
    'password-stdin': { type: 'boolean' },
  })
  if (values.email === undefined || values.role === undefined) {
    throw wrongUsage('user create needs --email and --role')
  }
  const email = parseEmail(values.email)
  const role = readWord('role', roles, values.role)
  const given = values['password-stdin'] ? firstLine(await terminal.readStdin()) : undefined
  if (given !== undefined && textProblem(given, passwordRule)) {
    throw new StartError('the password must have 8 to 256 characters')
  }
  if (given !== undefined && isGuessable(given, { email })) {
    throw new StartError('the password must not be one of the commonest, nor the address')
  }
  const password = given ?? randomBytes(18).toString('base64url')
  await withCore(terminal, async (core) => {
    const made = await createUserAdmin(core)
      .create(email, role, password, commandLine)
      .catch(explained({ email_taken: `${email} is taken` }))
    terminal.out([made.id, made.email, made.role].join('\t'))
    if (given === undefined) terminal.out(`password: ${password}`)
  })
}

function list(args: string[], terminal: Terminal) {
  const options = readListOptions(args)
  return withCore(terminal, (core) => {
    const rows = createUserAdmin(core).list().map(accountView)
    printList(terminal, ['id', 'email', 'role', 'state', 'created_at'], rows, options)
  })
}

function change(text: string, changes: Changes, terminal: Terminal) {
  const email = parseEmail(text)
  return withCore(terminal, async (core) => {
    const users = createUserAdmin(core)
    const user = await users
      .update(users.byEmail(email), changes, commandLine)
      .catch(explained(refusalsOf(email)))
    const { role, state } = accountView(user)
    terminal.out(`${email} is ${role}, ${state}`)
  })
}

const acts = {
  delete: { act: 'remove', done: 'is removed; what was theirs goes while the server runs' },
  reset: {
    act: 'mailReset',
    done: 'gets a link to a new password, at the latest at the next start',
  },
  'totp-off': { act: 'removeFactor', done: 'logs in with the password alone' },
} as const

const isAct = (action: string): action is keyof typeof acts => Object.hasOwn(acts, action)

function act(action: keyof typeof acts, text: string, terminal: Terminal) {
  const email = parseEmail(text)
  const { act, done } = acts[action]
  const missing = action === 'totp-off' && {
    not_found: `there is no account ${email} with a second factor`,
  }
  return withCore(terminal, async (core) => {
    const users = createUserAdmin(core)
    const refusals = { ...refusalsOf(email), ...missing }
    await users[act](users.byEmail(email), commandLine).catch(explained(refusals))
    terminal.out(`${email} ${done}`)
  })
}

const refusalsOf = (email: string) => ({
  not_found: `there is no account ${email}`,
  last_admin: `${email} is the last admin`,
  mail_throttled: `${email} has got such a mail already: try again later`,
})

function accountView(row: UserRow) {
  const { id, email, role, emailVerified, disabledAt, createdAt } = row
  const state = disabledAt !== null ? 'disabled' : emailVerified ? 'verified' : 'unverified'
  return { id, email, role, state, created_at: isoTime(createdAt) }
}

function parseEmail(text: string) {
  const email = normalizeEmail(text)
  if (email === undefined) throw wrongUsage(`"${text}" is no e-mail address`)
  return email
}

function firstLine(text: string) {
  return text.split(/\r?\n/, 1)[0] ?? ''
}
