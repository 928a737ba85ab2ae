import { randomBytes } from 'node:crypto'
import { isoTime } from '../lib/clock.ts'
import { AppError, StartError } from '../lib/errors.ts'
import { normalizeEmail, textProblem } from '../lib/text.ts'
import { type Role, roles } from '../lib/vocabulary.ts'
import { passwordRule } from '../modules/accounts/model.ts'
import { commandLine, type Directory, withDirectory } from './directory.ts'
import type { Terminal } from './terminal.ts'
import { readOptions, refuseArguments, wrongUsage } from './usage.ts'

/** `hostline user …`: accounts, beside a running server or without one. */
export async function user([action, ...args]: string[], terminal: Terminal): Promise<void> {
  const act = action === undefined ? undefined : actions[action]
  if (!act) throw wrongUsage('user create, role, verify, disable, enable or list')
  await act(args, terminal)
}

const actions: Record<string, (args: string[], terminal: Terminal) => Promise<void>> = {
  create,
  async role(args, terminal) {
    const [email = '', name = '', ...rest] = args
    refuseArguments(rest)
    const role = parseRole(name)
    await change(terminal, email, (people, address) =>
      people.update(people.byEmail(address), { role }, commandLine),
    )
  },
  async verify([email = '', ...rest], terminal) {
    refuseArguments(rest)
    await change(terminal, email, (people, address) =>
      people.update(people.byEmail(address), { emailVerified: true }, commandLine),
    )
  },
  async disable([email = '', ...rest], terminal) {
    refuseArguments(rest)
    await change(terminal, email, (people, address) =>
      people.update(people.byEmail(address), { disabled: true }, commandLine),
    )
  },
  async enable([email = '', ...rest], terminal) {
    refuseArguments(rest)
    await change(terminal, email, (people, address) =>
      people.update(people.byEmail(address), { disabled: false }, commandLine),
    )
  },
  async list(args, terminal) {
    refuseArguments(args)
    await withDirectory(terminal, async ({ people }) => {
      for (const { id, email, role, emailVerified, disabledAt, createdAt } of people.list()) {
        const state = disabledAt !== null ? 'disabled' : emailVerified ? 'verified' : 'unverified'
        terminal.out([id, email, role, state, isoTime(createdAt)].join('\t'))
      }
    })
  },
}

async function create(args: string[], terminal: Terminal) {
  const { values, positionals } = readOptions(args, {
    email: { type: 'string' },
    role: { type: 'string' },
    'password-stdin': { type: 'boolean' },
  })
  refuseArguments(positionals)
  if (values.email === undefined || values.role === undefined) {
    throw wrongUsage('user create needs --email and --role')
  }
  const email = parseEmail(values.email)
  const role = parseRole(values.role)
  const given = values['password-stdin'] ? firstLine(await terminal.readStdin()) : undefined
  if (given !== undefined && textProblem(given, passwordRule)) {
    throw new StartError('the password must have 8 to 256 characters')
  }
  const password = given ?? randomBytes(18).toString('base64url')
  await withDirectory(terminal, async ({ people }) => {
    const made = await people
      .create(email, role, password, commandLine)
      .catch(explained({ conflict: `${email} is taken` }))
    terminal.out(`${made.id}\t${made.email}\t${made.role}`)
    if (given === undefined) terminal.out(`password: ${password}`)
  })
}

function change(
  terminal: Terminal,
  text: string,
  act: (people: Directory['people'], email: string) => Promise<unknown>,
) {
  const email = parseEmail(text)
  return withDirectory(terminal, async ({ people }) => {
    await act(people, email).catch(
      explained({
        not_found: `there is no account ${email}`,
        conflict: `${email} is the last admin`,
      }),
    )
  })
}

/** Says in a line what a refusal means here. */
function explained(texts: { [kind in AppError['kind']]?: string }) {
  return (error: unknown): never => {
    const text = error instanceof AppError ? texts[error.kind] : undefined
    throw text === undefined ? error : new StartError(text)
  }
}

function parseEmail(text: string) {
  const email = normalizeEmail(text)
  if (email === undefined) throw wrongUsage(`"${text}" is no e-mail address`)
  return email
}

function parseRole(text: string): Role {
  const role = roles.find((known) => known === text)
  if (!role) throw wrongUsage(`the role must be one of ${roles.join(', ')}`)
  return role
}

function firstLine(text: string) {
  return text.split(/\r?\n/, 1)[0] ?? ''
}
