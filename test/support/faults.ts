import { describe, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { tools } from './tools.ts'

const faults = process.env['FAULTS']

/** The amount of work of a fault test: full with FAULTS=full (`bun run test:faults`), less with FAULTS=short
 *  (`test:faults:short`), and least in `bun run test`. */
export function size(full: number, short: number, quick = short): number {
  if (faults === 'full') return full
  return faults === 'short' ? short : quick
}

const nothing: unknown = new Proxy(() => nothing, { get: () => nothing })

/** Whether a run has time for what takes too long for `bun run test`. */
export const isAtLength = faults !== undefined

/** A test that takes too long for `bun run test`: `test:faults` runs it, and CI runs its short form. */
export const testAtLength = (isAtLength ? test : nothing) as typeof test

/** A group of such tests: bun runs `beforeAll` also where no test is. */
export const describeAtLength = (isAtLength ? describe : nothing) as typeof describe

const source = join(import.meta.dir, 'power-cut.c')
const cache = join(import.meta.dir, '../../node_modules/.cache/hostline')

/** The path of the LD_PRELOAD shim in power-cut.c, which is compiled once. */
export function shim(): string {
  const path = join(cache, `power-cut-${Bun.hash(readFileSync(source)).toString(36)}.so`)
  if (existsSync(path)) return path
  mkdirSync(cache, { recursive: true })
  const draft = `${path}.${process.pid}`
  const command = [tools.gcc ?? '', '-shared', '-fPIC', '-O2', '-o', draft, source]
  const { exitCode, stderr } = Bun.spawnSync(command)
  if (exitCode !== 0) throw new Error(stderr.toString())
  renameSync(draft, path)
  return path
}
