// Set before any import: outside of production the framework writes a long text for every refused body.
process.env['NODE_ENV'] ??= 'production'
const { setPriority } = await import('node:os')
const { run } = await import('./cli/run.ts')

process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  // The reader of the output may close it early: `hostline check | head -1`. The command finishes its work.
  if (code === 'EPIPE') return
  process.stderr.write(`hostline: the output cannot be written: ${message}\n`)
  process.exit(1)
})

const exitCode = await run(process.argv.slice(2), {
  environment: process.env,
  isInteractive: process.stdout.isTTY === true,
  out: (line) => process.stdout.write(`${line}\n`),
  err: (line) => process.stderr.write(`${line}\n`),
  readStdin: () => Bun.stdin.text(),
  yieldToOthers() {
    try {
      setPriority(19)
    } catch {
      // A sandbox may forbid this. Long work also pauses regularly.
    }
  },
})

// After a failure, pending work could keep the process alive; a success lets its output drain.
if (exitCode !== 0) process.exit(exitCode)
