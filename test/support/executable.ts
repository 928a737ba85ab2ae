import { Database } from 'bun:sqlite'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import journal from '../../drizzle/meta/_journal.json' with { type: 'json' }
import manifest from '../../package.json' with { type: 'json' }
import { build } from '../../scripts/build.ts'

const project = join(import.meta.dir, '../..')
const cache = join(project, 'node_modules/.cache/hostline')
const prefix = 'built-'
// The inputs of the build; the lockfile stands for the packages.
const sources = [
  'src/**',
  'client/**',
  'docs/reasons.md',
  'drizzle/**',
  'scripts/*',
  'LICENSE',
  'package.json',
  'bun.lock',
  'tsconfig.json',
]

export type Executable = { path: string; inputs: string[]; emptyData: string }
let made: Promise<Executable> | undefined

/** The executable of the current sources, built once for all test processes and again after a change.
 *  @returns its path, its inputs, and the data directory of its first start */
export function executable(): Promise<Executable> {
  made ??= findOrBuild()
  return made
}

async function findOrBuild(): Promise<Executable> {
  const files = sources
    .flatMap((some) => [...new Bun.Glob(some).scanSync(project)])
    .filter((file) => !file.includes('/dist/'))
    .sort()
  const folder = join(cache, prefix + digestOf(files))
  mkdirSync(cache, { recursive: true })
  // A second process waits and finds it built; the lock ends with its process.
  using lock = new Database(join(cache, 'build.lock'))
  lock.run('PRAGMA busy_timeout = 60000')
  lock.run('BEGIN EXCLUSIVE')
  if (!existsSync(folder)) await buildIn(folder, files)
  return {
    path: join(folder, 'hostline'),
    inputs: JSON.parse(readFileSync(join(folder, 'inputs.json'), 'utf8')),
    emptyData: join(folder, 'data'),
  }
}

function digestOf(files: readonly string[]) {
  const hasher = new Bun.CryptoHasher('sha256').update(Bun.revision)
  for (const file of files) hasher.update(`\0${file}\0`).update(readFileSync(join(project, file)))
  return hasher.digest('hex').slice(0, 16)
}

async function buildIn(folder: string, files: readonly string[]) {
  for (const name of readdirSync(cache)) {
    if (name.startsWith(prefix)) rmSync(join(cache, name), { recursive: true })
  }
  const draft = join(cache, 'draft')
  rmSync(draft, { recursive: true, force: true })
  mkdirSync(draft)
  const path = join(draft, 'hostline')
  const inputs = await build(path)
  const unseen = inputs.filter((input) => !/^node_modules\//.test(input) && !files.includes(input))
  if (unseen.length > 0) throw new Error(`would not be built again for changes of ${unseen}`)
  writeFileSync(join(draft, 'inputs.json'), JSON.stringify(inputs))
  await startOnce(path, join(draft, 'data'))
  renameSync(draft, folder)
}

async function startOnce(path: string, dataDir: string) {
  const env = { DATA_DIR: dataDir, HOST: '127.0.0.1', PORT: '0' }
  const server = Bun.spawn([path], { env, stdout: 'pipe' })
  const decoder = new TextDecoder()
  for await (const chunk of server.stdout) {
    const [, address] = /listens on ([^\s"]+)/.exec(decoder.decode(chunk)) ?? []
    // A server that answers handles signals.
    if (address) void fetch(`http://${address}/healthz`).then(() => server.kill('SIGTERM'))
  }
  if ((await server.exited) !== 0) throw new Error('the executable does not start')
}

/** Builds the next version in a folder, from a copy of the sources: with a migration more, which counts up to `steps`.
 *  @returns its path */
export async function buildNext(folder: string, steps = 1): Promise<string> {
  const files = sources.flatMap((some) => [...new Bun.Glob(some).scanSync(project)])
  for (const file of files) cpSync(join(project, file), join(folder, file))
  symlinkSync(join(project, 'node_modules'), join(folder, 'node_modules'))
  const write = (file: string, text: string) => writeFileSync(join(folder, file), text)
  const entries = [...journal.entries, { tag: 'next' }]
  write('drizzle/next.sql', migrationOf(steps))
  write('drizzle/meta/_journal.json', JSON.stringify({ ...journal, entries }))
  write('package.json', JSON.stringify({ ...manifest, version: nextVersion }))
  const path = join(folder, 'hostline')
  const child = Bun.spawn([process.execPath, 'scripts/build.ts', path], {
    cwd: folder,
    stdout: 'ignore',
  })
  if ((await child.exited) !== 0) throw new Error('the next version cannot be built')
  return path
}

export const nextVersion = '99.0.0'
const migrationOf = (steps: number) => `CREATE TABLE next AS WITH RECURSIVE numbers(n) AS
  (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${steps}) SELECT max(n) AS n FROM numbers`
