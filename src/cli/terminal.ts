import { type ParseArgsConfig, parseArgs } from 'node:util'
import { AppError, type ErrorKind, StartError } from '../lib/errors.ts'

/** What a command sees of the outside: injected, so that tests can run commands in-process. */
export type Terminal = {
  environment: Record<string, string | undefined>
  /** True when a person reads the output. */
  isInteractive: boolean
  out(line: string): void
  err(line: string): void
  readStdin(): Promise<string>
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

/** One of a closed set of words.
 *  @throws StartError (wrong usage) */
export function readWord<T extends string>(name: string, words: readonly T[], text = ''): T {
  const word = words.find((known) => known === text)
  if (word === undefined) throw wrongUsage(`the ${name} must be one of ${words.join(', ')}`)
  return word
}

/** For a `catch`: says in a line what a refusal means for this command. */
export function explained(texts: { [kind in ErrorKind]?: string }) {
  return (error: unknown): never => {
    const text = error instanceof AppError ? texts[error.kind] : undefined
    throw text === undefined ? error : new StartError(text)
  }
}
