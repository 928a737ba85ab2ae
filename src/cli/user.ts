import { randomBytes } from 'node:crypto'
import type { Static } from '@sinclair/typebox'
import { StartError } from '../lib/errors.ts'
import { parseId } from '../lib/ids.ts'
import { normalizeEmail } from '../lib/text.ts'
import { roles } from '../lib/vocabulary.ts'
import type { AccessUpdate, ManagedUser, PurgeCounts, Session } from '../modules/accounts/model.ts'
import type { Delivery as UserDelivery } from '../modules/notifications/model.ts'
import type { SystemState } from '../modules/operator/model.ts'
import { type Call, listAll, withService } from './call.ts'
import {
  type Command,
  explained,
  printList,
  Refusal,
  readJsonOption,
  readOperand,
  readOptions,
  readWord,
  refuseArguments,
  type Terminal,
  withActions,
  wrongUsage,
} from './terminal.ts'

const jsonOption = { json: { type: 'boolean' } } as const

type User = Static<typeof ManagedUser>
type Changes = Static<typeof AccessUpdate>

export const user = withActions('user', {
  create,
  show,
  role: ([text = '', word, ...rest], terminal) =>
    changing({ role: readWord('role', roles, word) })([text, ...rest], terminal),
  verify: changing({ email_verified: true }),
  disable: changing({ disabled: true }),
  enable: changing({ disabled: false }),
  sessions,
  logout: requesting('DELETE', '/sessions', 'is logged out on every device'),
  delete: requesting('DELETE', '', 'is removed; their data is deleted while the server runs'),
  purge,
  reset,
  'totp-off': requesting('DELETE', '/totp', 'logs in with only the password', mustHaveTotp),
  list,
})

function requesting(method: string, path: string, done: string, mustSuit = (_: User) => {}) {
  return (args: string[], terminal: Terminal) =>
    withUser(args, terminal, async (call, found) => {
      mustSuit(found)
      await call(method, `/v1/admin/users/${found.id}${path}`).catch(refusedFor(found))
      terminal.out(`${found.email} ${done}`)
    })
}

const startPurge = requesting(
  'POST',
  '/purge',
  'is removed with all they have written while the server runs; how much: hostline audit --action user_purged',
)

function purge(args: string[], terminal: Terminal) {
  if (!args.includes('--dry-run')) return startPurge(args, terminal)
  const options = { 'dry-run': { type: 'boolean' } } as const
  const { operand } = readOperand(args, 'user purge needs an address', options)
  return withUser([operand], terminal, async (call, { id }) => {
    const counts = await call<PurgeCounts>('GET', `/v1/admin/users/${id}/purge`)
    const rows = Object.entries(counts).map(([what, count]) => ({ what, count }))
    printList(terminal, ['what', 'count'], rows)
  })
}

function reset(args: string[], terminal: Terminal) {
  return withUser(args, terminal, async (call, user) => {
    const { id, email, disabled } = user
    if (disabled) throw new StartError(`${email} is disabled and gets no mail`)
    await call('POST', `/v1/admin/users/${id}/password-reset`).catch(refusedFor(user))
    const { mail } = await call<SystemState>('GET', '/v1/admin/system')
    terminal.out(
      mail.configured
        ? `${email} gets a link for a new password`
        : `SMTP_URL is not set: the server only logs the mail to ${email}, without the link over https`,
    )
  })
}

function mustHaveTotp({ email, totp }: User) {
  if (!totp) throw new StartError(`there is no account ${email} with a second factor`)
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
  if (given?.includes('\ufffd')) throw new StartError('the password is not text in UTF-8')
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
  const isJson = readJsonOption(args)
  return withService(terminal, async (call) => {
    const users = await listAll<User>(call, '/v1/admin/users')
    const rows = users.map((user) => {
      const { id, email, role, created_at } = user
      return { id, email, role, state: stateOf(user), created_at }
    })
    printList(terminal, ['id', 'email', 'role', 'state', 'created_at'], rows, isJson)
  })
}

function changing(changes: Changes): Command {
  return (args, terminal) =>
    withUser(args, terminal, async (call, found) => {
      const path = `/v1/admin/users/${found.id}`
      const changed = await call<User>('PATCH', path, changes).catch(refusedFor(found))
      terminal.out(`${found.email} is ${changed.role}, ${stateOf(changed)}`)
    })
}

const recentDeliveries = 20

function show(args: string[], terminal: Terminal) {
  const { operand, values } = readOperand(args, 'user show needs an address', jsonOption)
  return withUser([operand], terminal, async (call, user) => {
    const path = `/v1/admin/users/${user.id}/deliveries?per_page=${recentDeliveries}`
    const { data: deliveries } = await call<{ data: Static<typeof UserDelivery>[] }>('GET', path)
    if (values.json) return terminal.out(JSON.stringify({ ...user, deliveries }, null, 2))
    const fields = Object.entries(user).map(([field, value]) => ({ field, value }))
    printList(terminal, ['field', 'value'], fields)
    terminal.out('')
    const names = ['at', 'channel', 'kind', 'state', 'attempts', 'answer'] as const
    printList(terminal, names, deliveries)
  })
}

function sessions(args: string[], terminal: Terminal) {
  const { operand, values } = readOperand(args, 'user sessions needs an address', jsonOption)
  return withUser([operand], terminal, async (call, { id }) => {
    const rows = await listAll<Static<typeof Session>>(call, `/v1/admin/users/${id}/sessions`)
    const names = ['id', 'created_at', 'last_used_at', 'ip', 'user_agent'] as const
    printList(terminal, names, rows, values.json)
  })
}

function withUser(
  [text = '', ...rest]: string[],
  terminal: Terminal,
  work: (call: Call, user: User) => Promise<void>,
) {
  refuseArguments(rest)
  if (parseId(text) === undefined) parseEmail(text) // before anything is opened
  return withService(terminal, async (call) => work(call, await findUser(call, text)))
}

export function findUser(call: Call, text: string): Promise<User> {
  const id = parseId(text)
  const name = id ?? parseEmail(text)
  const path = id ? `admin/users/${id}` : `operator/users/${encodeURIComponent(name)}`
  const missing = explained({ not_found: `there is no account ${name}` })
  return call<User>('GET', `/v1/${path}`).catch(missing)
}

const refusedFor = ({ email }: User) =>
  explained({
    not_found: `there is no account ${email}`,
    last_admin: `${email} is the last admin`,
    mail_throttled: `${email} has already got such a mail: try again later`,
  })

function stateOf({ disabled, email_verified: isVerified }: User) {
  if (disabled) return 'disabled'
  return isVerified ? 'verified' : 'unverified'
}

function parseEmail(text: string) {
  const email = normalizeEmail(text)
  if (email === undefined) throw wrongUsage(`"${text}" is not an e-mail address`)
  return email
}

const firstLine = (text: string) => text.split(/\r?\n/, 1)[0] ?? ''
