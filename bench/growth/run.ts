import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { generate } from './generate.ts'
import { type Operation, operations, type Sampling } from './operations.ts'
import { type Subject, startSubject } from './subject.ts'

/** `bun run bench:growth`: the same requests at 1 %, 10 % and 100 % of the full size. Every sample is taken on the three
 *  servers in turn, so that whatever else the machine does hits all of them alike. */

const { values } = parseArgs({
  options: {
    /** The largest size; 0.5 for a quick look, less has no deep pages. */
    scale: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '4' },
    samples: { type: 'string', default: '200' },
    /** Only operations whose name has this in it. */
    only: { type: 'string', default: '' },
  },
})
const shares = [0.01, 0.1, 1]
const rounds = Number(values.rounds)
const samples = Number(values.samples)
const largestGrowth = 1.3
const warmUps = 60

const directory = mkdtempSync(join(tmpdir(), 'hostline-growth-'))
const subjects: Subject[] = []
let exitCode = 1
try {
  for (const share of shares) subjects.push(await openSubject(share))
  exitCode = print(await measure(operations.filter(({ name }) => name.includes(values.only))))
} finally {
  await Promise.all(subjects.map((subject) => subject.stop()))
  rmSync(directory, { recursive: true })
}
process.exit(exitCode)

async function openSubject(share: number) {
  const path = join(directory, `${share * 100}`)
  const startedAt = performance.now()
  const landmarks = await generate(path, share * Number(values.scale))
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1)
  console.log(`filled and checked ${share * 100} % in ${seconds} s`)
  return startSubject(path, landmarks)
}

type Measured = { operation: Operation; times: number[][] }

/** @returns the times of every operation, in ms, for each subject */
async function measure(chosen: Operation[]): Promise<Measured[]> {
  const measured = chosen.map((operation) => ({
    operation,
    times: subjects.map((): number[] => []),
  }))
  const samplings: Sampling[][] = []
  for (let round = 0; round < rounds; round++) {
    for (const subject of subjects) await subject.logIn()
    for (const [index, operation] of chosen.entries()) {
      samplings[index] ??= await Promise.all(subjects.map(operation.prepare))
      await take(samplings[index], round, measured[index]?.times ?? [])
    }
  }
  return measured
}

async function take(samplings: Sampling[], round: number, times: number[][]) {
  for (let n = -warmUps; n < samples; n++) {
    for (const [index, sampling] of samplings.entries()) {
      const time = await timed(index, sampling, (n + warmUps) * rounds + round)
      if (n >= 0) times[index]?.push(time)
    }
  }
}

async function timed(index: number, sampling: Sampling, n: number): Promise<number> {
  await sampling.before?.(n)
  const request = sampling.request(n)
  const askedAt = performance.now()
  await subjects[index]?.ask(request)
  return performance.now() - askedAt
}

/** @returns the exit code */
function print(measured: Measured[]): 0 | 1 {
  const grown: string[] = []
  const excused: string[] = []
  const sizes = shares.map((share) => `at ${share * 100} %`)
  console.log(
    `\n| p50 / p99 in ms | ${sizes.join(' | ')} | p50, 100 % : 1 % |\n|---|---|---|---|---|`,
  )
  for (const { operation, times } of measured) {
    const { name, excuse } = operation
    const medians = times.map((some) => percentile(some, 0.5))
    const cells = times.map(
      (some, n) => `${medians[n]?.toFixed(2)} / ${percentile(some, 0.99).toFixed(2)}`,
    )
    const growth = (medians.at(-1) ?? 0) / (medians[0] ?? 0)
    console.log(`| ${[name, ...cells, growth.toFixed(2)].join(' | ')} |`)
    if (growth <= largestGrowth) continue
    if (excuse === undefined) grown.push(`${name} (${growth.toFixed(2)})`)
    else excused.push(`${name}: ${excuse}`)
  }
  if (excused.length > 0) console.log(`\nnot judged: ${excused.join('; ')}`)
  if (grown.length === 0) return 0
  console.log(`\ngrew by more than ${largestGrowth}: ${grown.join(', ')}`)
  return 1
}

function percentile(values: number[], share: number) {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN
}
