// Runs the suite repeatedly: `bun run test:repeat 20`. Prints the failed tests and the slowest files. `--busy` keeps
// all processors occupied meanwhile.
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const { values, positionals } = parseArgs({
  options: { busy: { type: 'boolean' } },
  allowPositionals: true,
})
const runs = Number(positionals[0] ?? 20)
const folder = mkdtempSync(join(tmpdir(), 'hostline-repeat-'))
const spinners = values.busy ? Array.from({ length: availableParallelism() }, spin) : []
const longest = new Map<string, number>()
let passed = 0

for (let run = 1; run <= runs; run++) {
  const [report, log] = [join(folder, `${run}.xml`), join(folder, `${run}.log`)]
  const startedAt = performance.now()
  const isRight = runSuite(report, log)
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0)
  const failures = readReport(report)
  console.log(`${run} of ${runs} ${isRight ? 'passed' : 'failed'} in ${seconds} s`)
  if (isRight) passed++
  else console.log([...failures, log].map((line) => `  ${line}`).join('\n'))
}

for (const spinner of spinners) spinner.kill('SIGKILL')
const slowest = [...longest].sort(([, a], [, b]) => b - a).slice(0, 10)
for (const [file, seconds] of slowest) console.log(`${seconds.toFixed(1).padStart(6)} s  ${file}`)
console.log(`${passed} of ${runs} passed`)
process.exit(passed === runs ? 0 : 1)

function spin() {
  return Bun.spawn([process.execPath, '--no-orphans', '-e', 'for (;;);'])
}

function runSuite(report: string, log: string): boolean {
  const command = ['run', 'test', '--reporter=junit', `--reporter-outfile=${report}`]
  const output = openSync(log, 'w')
  const { success } = Bun.spawnSync([process.execPath, ...command], {
    stdout: output,
    stderr: output,
  })
  closeSync(output)
  return success
}

/** Collects the duration of each file.
 *  @returns the names of the failed tests */
function readReport(path: string): string[] {
  const report = existsSync(path) ? readFileSync(path, 'utf8') : ''
  for (const [, file = '', time] of report.matchAll(
    /^ {2}<testsuite name="([^"]+)".* time="([\d.]+)"/gm,
  )) {
    longest.set(file, Math.max(longest.get(file) ?? 0, Number(time)))
  }
  const failures = report.matchAll(/<testcase name="([^"]*)".* file="([^"]*)".*>\n *<failure/g)
  return [...failures].map(([, name, file]) => `${file}: ${name}`)
}
