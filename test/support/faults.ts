import { join } from 'node:path'
import { temporaryDirectory } from './directory.ts'

export const compiler = Bun.which('gcc') ?? Bun.which('cc')

/** How much a test of faults does: all of it with FAULTS=full, a part in the ordinary run. */
export const size = (full: number, quick: number) =>
  process.env['FAULTS'] === 'full' ? full : quick

let built: string | undefined

/** The path of the LD_PRELOAD shim in power-cut.c, built when it is first asked for. */
export function shim(): string {
  if (built) return built
  const directory = temporaryDirectory()
  process.on('exit', () => directory[Symbol.dispose]())
  built = join(directory.path, 'power-cut.so')
  const source = join(import.meta.dir, 'power-cut.c')
  const command = [compiler ?? '', '-shared', '-fPIC', '-O2', '-o', built, source]
  const { exitCode, stderr } = Bun.spawnSync(command)
  if (exitCode !== 0) throw new Error(stderr.toString())
  return built
}
