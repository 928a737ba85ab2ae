import { type ParseArgsConfig, parseArgs } from 'node:util'
import { StartError } from '../lib/errors.ts'

/** Injected, so that tests can run commands in-process. */
export type Terminal = {
  environment: Record<string, string | undefined>
  /** True when a person reads the output. */
  isInteractive: boolean
  out(line: string): void
  err(line: string): void
  readStdin(): Promise<string>
  /** Permanently lowers the priority of this process. */
  yieldToOthers(): void
  /** Replaces the version of the loaded library in tests. */
  sqliteVersion?: string | undefined
}

export type Command = (args: string[], terminal: Terminal) => void | Promise<void>

export const withActions =
  (name: string, actions: Record<string, Command>): Command =>
  ([action = '', ...args], terminal) => {
    const act = Object.hasOwn(actions, action) ? actions[action] : undefined
    if (!act) {
      const choices = new Intl.ListFormat('en-GB', { type: 'disjunction' })
      throw wrongUsage(`${name} ${choices.format(Object.keys(actions))}`)
    }
    return act(args, terminal)
  }

export function wrongUsage(message: string) {
  return new StartError(`${message} (see: hostline help)`, { exitCode: 2 })
}

export function refuseArguments(args: string[]): void {
  if (args.length > 0) throw wrongUsage(`unexpected "${args.join(' ')}"`)
}

type Options = NonNullable<ParseArgsConfig['options']>

export function readOptions<T extends Options>(args: string[], options: T) {
  const { values, operands } = readOperands(args, options)
  refuseArguments(operands)
  return values
}

/** Parses a command line with one operand, such as a file, and options.
 *  @throws StartError (wrong usage) */
export function readOperand<T extends Options>(args: string[], usage: string, options: T) {
  const { values, operands } = readOperands(args, options)
  const [operand, ...rest] = operands
  if (!operand) throw wrongUsage(usage)
  refuseArguments(rest)
  return { operand, values }
}

export function readOperands<T extends Options>(args: string[], options: T) {
  try {
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true })
    return { operands: positionals, values }
  } catch (error) {
    const [reason = ''] = (error as Error).message.split('. ', 1)
    throw wrongUsage(reason.replaceAll('\n', ' '))
  }
}

export const readJsonOption = (args: string[]): boolean =>
  readOptions(args, { json: { type: 'boolean' } }).json === true

export function printList<Row extends object>(
  { out }: Terminal,
  names: readonly (keyof Row & string)[],
  rows: readonly Row[],
  isJson = false,
): void {
  const lines = rows.map((row) => names.map((name) => inOneLine(cellOf(row[name]))).join('\t'))
  out(isJson ? JSON.stringify(rows, null, 2) : [names.join('\t'), ...lines].join('\n'))
}

/** The reason of a ban, for example, may have several lines. */
const inOneLine = (text: string) => text.replaceAll(/[\t\r\n]+/g, ' ')

function cellOf(value: unknown): string {
  if (value === null) return '–'
  if (Array.isArray(value)) return value.join(',')
  if (typeof value !== 'object') return String(value)
  const parts = Object.entries(value).filter(([, part]) => part !== null)
  return parts.map(([name, part]) => `${name}=${part}`).join(' ') || '–'
}

export function readWord<T extends string>(name: string, words: readonly T[], text = ''): T {
  const word = words.find((known) => known === text)
  if (word === undefined) throw wrongUsage(`the ${name} must be one of ${words.join(', ')}`)
  return word
}

export class Refusal extends StartError {
  /** The reason of the error, or its code when there is none. */
  readonly reason: string
  readonly fields: Record<string, string>

  constructor(message: string, reason: string, fields: Record<string, string>) {
    const wrong = Object.entries(fields).map(([name, problem]) => `${name} ${problem}`)
    super(wrong.join('\n') || message, { exitCode: wrong.length > 0 ? 2 : 1 })
    this.reason = reason
    this.fields = fields
  }
}

export function explained(texts: Record<string, string>) {
  return (error: unknown): never => {
    const text = error instanceof Refusal ? texts[error.reason] : undefined
    throw text === undefined ? error : new StartError(text)
  }
}

/** The command line of this program, for a process of its own. */
export function program(): string[] {
  const main = Bun.fileURLToPath(new URL('../main.ts', import.meta.url))
  const isEmbedded = /^(\/\$bunfs|B:)/.test(main)
  return [process.execPath, ...(isEmbedded ? [] : [main])]
}
