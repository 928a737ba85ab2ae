import './production.ts'
import { run } from './cli/run.ts'

process.exitCode = await run(process.argv.slice(2), {
  environment: process.env,
  isInteractive: process.stdout.isTTY === true,
  out: (line) => process.stdout.write(`${line}\n`),
  err: (line) => process.stderr.write(`${line}\n`),
  readStdin: () => Bun.stdin.text(),
})
