// Set before anything else is loaded: outside of production the framework formats each refused body at length before we
// answer it in the contract's form.
process.env['NODE_ENV'] ??= 'production'
const { run } = await import('./cli/run.ts')

// Whoever reads the output may have had enough: `hostline check | head -1`.
process.stdout.on('error', () => process.exit(0))

const exitCode = await run(process.argv.slice(2), {
  environment: process.env,
  isInteractive: process.stdout.isTTY === true,
  out: (line) => process.stdout.write(`${line}\n`),
  err: (line) => process.stderr.write(`${line}\n`),
  readStdin: () => Bun.stdin.text(),
})

// A failure may leave something running that would keep the process; a success lets its output drain.
if (exitCode !== 0) process.exit(exitCode)
