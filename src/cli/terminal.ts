import { type ParseArgsConfig, parseArgs } from 'node:util'
import { StartError } from '../lib/errors.ts'

/** What a command sees of the outside: injected, so that tests can run commands in-process. */
export type Terminal = {
  environment: Record<string, string | undefined>
  /** True when a person reads the output. */
  isInteractive: boolean
  out(line: string): void
  err(line: string): void
  readStdin(): Promise<string>
  /** That of the library which is loaded, unless a test tells another. */
  sqliteVersion?: string | undefined
}

/** A command that was called in a way it does not know. */
export function wrongUsage(message: string) {
  return new StartError(`${message} (see: hostline help)`, { exitCode: 2 })
}

export function refuseArguments(args: string[]): void {
  if (args.length > 0) throw wrongUsage(`unexpected "${args.join(' ')}"`)
}

/** The values of a command that takes nothing but options.
 *  @throws StartError (wrong usage) */
export function readOptions<T extends NonNullable<ParseArgsConfig['options']>>(
  args: string[],
  options: T,
) {
  const { values, positionals } = parse(args, options)
  refuseArguments(positionals)
  return values
}

function parse<T extends NonNullable<ParseArgsConfig['options']>>(args: string[], options: T) {
  try {
    return parseArgs({ args, options, allowPositionals: true })
  } catch (error) {
    throw wrongUsage((error as Error).message)
  }
}

/** The one file or directory that a command is given, and its options.
 *  @throws StartError (wrong usage) */
export function readOperand<T extends NonNullable<ParseArgsConfig['options']>>(
  args: string[],
  usage: string,
  options: T,
) {
  const { values, positionals } = parse(args, options)
  const [operand, ...rest] = positionals
  if (operand === undefined) throw wrongUsage(usage)
  refuseArguments(rest)
  return { operand, values }
}

/** The one thing that a command is told to work on; undefined for `--all`.
 *  @throws StartError (wrong usage) */
export function readOneOrAll(args: string[], usage: string): string | undefined {
  const { values, positionals } = parse(args, { all: { type: 'boolean' } })
  const [id, ...rest] = positionals
  refuseArguments(rest)
  if ((id === undefined) === (values.all !== true)) throw wrongUsage(usage)
  return id
}

/** Whether a list is for a program, by the arguments of its command.
 *  @throws StartError (wrong usage) */
export function readListOptions(args: string[]): { isJson: boolean } {
  const { json = false } = readOptions(args, { json: { type: 'boolean' } })
  return { isJson: json }
}

/** Prints rows under a header, tab-separated; for programs as JSON. Nothing is written for null. */
export function printList<Row extends Record<string, string | number | null>>(
  { out }: Terminal,
  names: readonly (keyof Row & string)[],
  rows: readonly Row[],
  { isJson }: { isJson: boolean },
): void {
  if (isJson) {
    out(JSON.stringify(rows, null, 2))
  } else {
    out(names.join('\t'))
    for (const row of rows) out(names.map((name) => row[name] ?? '–').join('\t'))
  }
}

/** One of a closed set of words.
 *  @throws StartError (wrong usage) */
export function readWord<T extends string>(name: string, words: readonly T[], text = ''): T {
  const word = words.find((known) => known === text)
  if (word === undefined) throw wrongUsage(`the ${name} must be one of ${words.join(', ')}`)
  return word
}

/** A request that the service refused. */
export class Refusal extends StartError {
  /** The reason where there is one, else the code. */
  readonly reason: string
  /** The message of each wrong field. */
  readonly fields: Record<string, string>

  constructor(message: string, reason: string, fields: Record<string, string>) {
    const wrong = Object.entries(fields).map(([name, problem]) => `${name} ${problem}`)
    super(wrong.join('\n') || message, { exitCode: wrong.length > 0 ? 2 : 1 })
    this.reason = reason
    this.fields = fields
  }
}

/** For a `catch`: says what a refusal means for this command, by its reason, else its code. */
export function explained(texts: Record<string, string>) {
  return (error: unknown): never => {
    const text = error instanceof Refusal ? texts[error.reason] : undefined
    throw text === undefined ? error : new StartError(text)
  }
}
