import { run } from '../../src/cli/run.ts'

type Options = { stdin?: string; environment?: Record<string, string>; sqliteVersion?: string }

/** Runs a command as main.ts would. */
export async function hostline(args: string[], dataDir: string, options: Options = {}) {
  const { stdin = '', environment = {}, sqliteVersion } = options
  const out: string[] = []
  const err: string[] = []
  const exitCode = await run(args, {
    environment: { DATA_DIR: dataDir, MIN_FREE_MB: '0', ...environment },
    isInteractive: false,
    out: (text) => out.push(text),
    err: (text) => err.push(text),
    readStdin: async () => stdin,
    yieldToOthers() {},
    sqliteVersion,
  })
  return { exitCode, out: out.join('\n'), err: err.join('\n') }
}
