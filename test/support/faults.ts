import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { tools } from './tools.ts'

/** How much a test of faults does: all of it with FAULTS=full, a part in the ordinary run. */
export const size = (full: number, quick: number) =>
  process.env['FAULTS'] === 'full' ? full : quick

const source = join(import.meta.dir, 'power-cut.c')
const cache = join(import.meta.dir, '../../node_modules/.cache/hostline')

/** The path of the LD_PRELOAD shim in power-cut.c, which is built once. */
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
