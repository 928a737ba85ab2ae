import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { percentile } from '../measure.ts'
import { generate } from './generate.ts'
import type { Operation, Sampling } from './operation.ts'
import { isScope, type Scope, scopes } from './scopes.ts'
import { type Subject, startSubject } from './subject.ts'

/** `bun run bench:growth`: the same requests at 1 %, 10 % and 100 % of the full size. Each sample is taken on the
 *  three servers in turn, so that other load on the machine affects all of them alike. */

const { values } = parseArgs({
  options: {
    /** The largest size; 0.5 for a quick run, less has no deep pages. */
    scale: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '4' },
    samples: { type: 'string', default: '200' },
    /** One scope instead of all. */
    only: { type: 'string', default: '' },
    /** Only operations whose name contains this. */
    name: { type: 'string', default: '' },
  },
})
const shares = [0.01, 0.1, 1]
const rounds = Number(values.rounds)
const samples = Number(values.samples)
const largestGrowth = 1.3
const warmUps = 60

const names = Object.keys(scopes).filter(isScope)
const chosen = names.filter((scope) => values.only === '' || values.only === scope)
if (chosen.length === 0) throw new Error(`--only ${names.join('|')}`)

let exitCode = 0
for (const scope of chosen) exitCode = Math.max(exitCode, await measureScope(scope))
process.exit(exitCode)

/** @returns the exit code */
async function measureScope(scope: Scope): Promise<0 | 1> {
  const directory = mkdtempSync(join(tmpdir(), 'hostline-growth-'))
  const subjects: Subject[] = []
  try {
    console.log(`\n## ${scope}`)
    for (const share of shares) subjects.push(await openSubject(directory, share, scope))
    const { operations } = scopes[scope]
    const named = operations.filter(({ name }) => name.includes(values.name))
    return print(await measure(named, subjects))
  } finally {
    await Promise.all(subjects.map((subject) => subject.stop()))
    rmSync(directory, { recursive: true })
  }
}

async function openSubject(directory: string, share: number, scope: Scope) {
  const path = join(directory, `${share * 100}`)
  const startedAt = performance.now()
  const landmarks = await generate(path, share * Number(values.scale), scope)
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1)
  console.log(`filled and checked ${share * 100} % in ${seconds} s`)
  return startSubject(path, landmarks)
}

/** An operation on one of the servers. */
type Run = { subject: Subject; sampling: Sampling; times: number[] }
type Measured = { operation: Operation; runs: Run[] }

async function measure(chosen: readonly Operation[], subjects: Subject[]): Promise<Measured[]> {
  for (const subject of subjects) await subject.logIn()
  const measured: Measured[] = []
  for (const operation of chosen) {
    const runs = subjects.map(async (subject) => {
      return { subject, sampling: await operation.prepare(subject), times: [] }
    })
    measured.push({ operation, runs: await Promise.all(runs) })
  }
  for (let round = 0; round < rounds; round++) await takeAll(measured, subjects, round)
  // Slow results are measured again for as long: other load on the machine must not look like growth.
  const slow = measured.filter((one) => growthOf(one) > largestGrowth || missOf(one))
  for (let round = rounds; round < 2 * rounds; round++) await takeAll(slow, subjects, round)
  return measured
}

async function takeAll(measured: Measured[], subjects: Subject[], round: number) {
  for (const subject of subjects) await subject.logIn()
  for (const { runs } of measured) {
    for (let n = -warmUps; n < samples; n++) {
      // Each size goes first equally often.
      const first = (n + warmUps) % runs.length
      for (const run of [...runs.slice(first), ...runs.slice(0, first)]) {
        const time = await timed(run, (n + warmUps) * 2 * rounds + round)
        if (n >= 0) run.times.push(time)
      }
    }
  }
}

async function timed({ subject, sampling }: Run, n: number): Promise<number> {
  await sampling.before?.(n)
  const request = sampling.request(n)
  const askedAt = performance.now()
  await subject.ask(request)
  return performance.now() - askedAt
}

/** p50 at the largest size divided by p50 at the smallest. */
function growthOf({ runs }: Measured): number {
  return percentile(runs.at(-1)?.times ?? [], 0.5) / percentile(runs[0]?.times ?? [], 0.5)
}

/** A miss of the absolute limit at the largest size. */
function missOf({ operation: { goal }, runs }: Measured): string | undefined {
  if (!goal) return undefined
  const [share, milliseconds] = goal
  const time = percentile(runs.at(-1)?.times ?? [], share)
  if (time <= milliseconds) return undefined
  return `p${share * 100} of ${time.toFixed(2)} ms, not ${milliseconds}`
}

/** @returns the exit code */
function print(measured: Measured[]): 0 | 1 {
  const failures: string[] = []
  const excused: string[] = []
  const sizes = shares.map((share) => `at ${share * 100} %`)
  console.log(
    `\n| p50 / p99 in ms | ${sizes.join(' | ')} | p50, 100 % : 1 % |\n|---|---|---|---|---|`,
  )
  for (const one of measured) {
    const { name, excuse } = one.operation
    const cells = one.runs.map(({ times }) =>
      [0.5, 0.99].map((share) => percentile(times, share).toFixed(2)).join(' / '),
    )
    const growth = growthOf(one)
    console.log(`| ${[name, ...cells, growth.toFixed(2)].join(' | ')} |`)
    const miss = missOf(one)
    if (miss !== undefined) failures.push(`${name}: ${miss}`)
    if (growth <= largestGrowth) continue
    if (excuse === undefined) failures.push(`${name}: grew by ${growth.toFixed(2)}`)
    else excused.push(`${name}: ${excuse}`)
  }
  if (excused.length > 0) console.log(`\nmay grow: ${excused.join('; ')}`)
  if (failures.length === 0) return 0
  console.log(`\ntoo slow: ${failures.join('; ')}`)
  return 1
}
