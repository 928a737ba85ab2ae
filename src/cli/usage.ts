import { type ParseArgsConfig, parseArgs } from 'node:util'
import { StartError } from '../lib/errors.ts'

/** A command that was called in a way it does not know. */
export function wrongUsage(message: string) {
  return new StartError(`${message} (see: hostline help)`, { exitCode: 2 })
}

export function refuseArguments(args: string[]): void {
  if (args.length > 0) throw wrongUsage(`unexpected "${args.join(' ')}"`)
}

/** @throws StartError (wrong usage) for an option that is not in `options` */
export function readOptions<T extends NonNullable<ParseArgsConfig['options']>>(
  args: string[],
  options: T,
) {
  try {
    return parseArgs({ args, options, allowPositionals: true })
  } catch (error) {
    throw wrongUsage((error as Error).message)
  }
}
