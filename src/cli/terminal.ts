import { type ParseArgsConfig, parseArgs } from 'node:util'
import { StartError } from '../lib/errors.ts'

/** The environment of a command, injected so that tests can run commands in-process. */
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

export function wrongUsage(message: string) {
  return new StartError(`${message} (see: hostline help)`, { exitCode: 2 })
}

export function refuseArguments(args: string[]): void {
  if (args.length > 0) throw wrongUsage(`unexpected "${args.join(' ')}"`)
}

/** Parses a command line with only options.
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

/** Parses a command line with one file or directory, and options.
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

/** Parses a command line with one id, or `--all`, for which it returns undefined.
 *  @throws StartError (wrong usage) */
export function readOneOrAll(args: string[], usage: string): string | undefined {
  const { values, positionals } = parse(args, { all: { type: 'boolean' } })
  const [id, ...rest] = positionals
  refuseArguments(rest)
  if ((id === undefined) === (values.all !== true)) throw wrongUsage(usage)
  return id
}

/** Parses the options of a list command.
 *  @throws StartError (wrong usage) */
export function readListOptions(args: string[]): { isJson: boolean } {
  const { json = false } = readOptions(args, { json: { type: 'boolean' } })
  return { isJson: json }
}

/** Prints rows under a header, tab-separated with null as an empty text, or as JSON for programs. */
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

/** Checks that a text is one of a closed set of words.
 *  @throws StartError (wrong usage) */
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

/** For a `catch`: replaces the message of a refusal, by its reason or code. */
export function explained(texts: Record<string, string>) {
  return (error: unknown): never => {
    const text = error instanceof Refusal ? texts[error.reason] : undefined
    throw text === undefined ? error : new StartError(text)
  }
}
