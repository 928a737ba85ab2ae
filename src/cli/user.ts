import { randomBytes } from 'node:crypto'
import type { Static } from '@sinclair/typebox'
import { StartError } from '../lib/errors.ts'
import { normalizeEmail } from '../lib/text.ts'
import { roles } from '../lib/vocabulary.ts'
import type { AccessUpdate, ManagedUser } from '../modules/accounts/model.ts'
import { type Call, listAll, withService } from './call.ts'
import {
  explained,
  printList,
  Refusal,
  readListOptions,
  readOptions,
  readWord,
  refuseArguments,
  type Terminal,
  wrongUsage,
} from './terminal.ts'

const actions = 'create, role, verify, disable, enable, delete, reset, totp-off or list'

type User = Static<typeof ManagedUser>

const changesOf = new Map<string, Static<typeof AccessUpdate>>([
  ['verify', { email_verified: true }],
  ['disable', { disabled: true }],
  ['enable', { disabled: false }],
])

const acts = new Map([
  [
    'delete',
    {
      method: 'DELETE',
      path: (id: string) => `/v1/admin/users/${id}`,
      done: 'is removed; their data is deleted while the server runs',
    },
  ],
  [
    'reset',
    {
      method: 'POST',
      path: (id: string) => `/v1/admin/users/${id}/password-reset`,
      done: 'gets a link for a new password',
    },
  ],
  [
    'totp-off',
    {
      method: 'DELETE',
      path: (id: string) => `/v1/admin/users/${id}/totp`,
      done: 'logs in with only the password',
    },
  ],
])

export async function user([action = '', ...args]: string[], terminal: Terminal): Promise<void> {
  if (action === 'create') return create(args, terminal)
  if (action === 'list') return list(args, terminal)
  const [text = '', ...words] = args
  if (action === 'role') {
    refuseArguments(words.slice(1))
    return change(text, { role: readWord('role', roles, words[0]) }, terminal)
  }
  refuseArguments(words)
  const changes = changesOf.get(action)
  if (changes) return change(text, changes, terminal)
  const act = acts.get(action)
  if (!act) throw wrongUsage(`user ${actions}`)
  return withUser(text, terminal, async (call, { id, email, totp }) => {
    if (action === 'totp-off' && !totp) {
      throw new StartError(`there is no account ${email} with a second factor`)
    }
    await call(act.method, act.path(id)).catch(explained(refusalsOf(email)))
    terminal.out(`${email} ${act.done}`)
  })
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
  const password = given ?? randomBytes(18).toString('base64url')
  await withService(terminal, async (call) => {
    const wanted = { email, role, password }
    const made = await call<User>('POST', '/v1/operator/users', wanted)
      .catch(explained({ email_taken: `${email} is taken` }))
      .catch(explainPassword)
    terminal.out([made.id, made.email, made.role].join('\t'))
    if (given === undefined) terminal.out(`password: ${password}`)
  })
}

function explainPassword(error: unknown): never {
  const problem = error instanceof Refusal && error.fields['password']
  throw problem ? new StartError(`the password ${problem}`) : error
}

function list(args: string[], terminal: Terminal) {
  const options = readListOptions(args)
  return withService(terminal, async (call) => {
    const users = await Array.fromAsync(listAll<User>(call, '/v1/admin/users'))
    const rows = users.map(({ id, email, role, created_at, ...it }) => ({
      id,
      email,
      role,
      state: stateOf(it),
      created_at,
    }))
    printList(terminal, ['id', 'email', 'role', 'state', 'created_at'], rows, options)
  })
}

function change(text: string, changes: Static<typeof AccessUpdate>, terminal: Terminal) {
  return withUser(text, terminal, async (call, { id, email }) => {
    const changed = await call<User>('PATCH', `/v1/admin/users/${id}`, changes).catch(
      explained(refusalsOf(email)),
    )
    terminal.out(`${email} is ${changed.role}, ${stateOf(changed)}`)
  })
}

function withUser(
  text: string,
  terminal: Terminal,
  work: (call: Call, user: User) => Promise<void>,
) {
  const email = parseEmail(text)
  return withService(terminal, async (call) => {
    const path = `/v1/operator/users/${encodeURIComponent(email)}`
    const found = await call<User>('GET', path).catch(
      explained({ not_found: `there is no account ${email}` }),
    )
    await work(call, found)
  })
}

const refusalsOf = (email: string) => ({
  not_found: `there is no account ${email}`,
  last_admin: `${email} is the last admin`,
  mail_throttled: `${email} has already got such a mail: try again later`,
})

function stateOf({
  disabled,
  email_verified: isVerified,
}: Pick<User, 'disabled' | 'email_verified'>) {
  if (disabled) return 'disabled'
  return isVerified ? 'verified' : 'unverified'
}

function parseEmail(text: string) {
  const email = normalizeEmail(text)
  if (email === undefined) throw wrongUsage(`"${text}" is not an e-mail address`)
  return email
}

function firstLine(text: string) {
  return text.split(/\r?\n/, 1)[0] ?? ''
}
