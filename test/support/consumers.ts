import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { clientPackage } from '../../scripts/build-client.ts'
import { temporaryDirectory } from './directory.ts'

const compiler = join(import.meta.dir, '../../node_modules/.bin/tsc')
const tools = join(import.meta.dir, '../consumers/node_modules')

/** Expects a compile error in a line of TypeScript: without one the compiler rejects the directive. */
export const expectError = (line: string) => `// @ts-expect-error\n${line}\n`

// Go's and Rust's tools would occupy all processors while other tests measure times.
const oneThread = { GOMAXPROCS: '1', RAYON_NUM_THREADS: '1' }

let archive: Uint8Array | undefined

export type Consumer = ReturnType<typeof createConsumer>

/** A third-party project: a folder outside the repository with the tools of test/consumers. */
export function createConsumer(files: Record<string, string> = {}) {
  if (!existsSync(tools)) throw new Error('bun install --cwd test/consumers')
  const directory = temporaryDirectory()
  const inside = (path: string) => join(directory.path, path)
  mkdirSync(inside('node_modules'))
  for (const name of readdirSync(tools)) {
    symlinkSync(join(tools, name), inside(`node_modules/${name}`))
  }
  write({ 'package.json': '{"type": "module", "private": true}', ...files })

  function write(more: Record<string, string>) {
    for (const [path, text] of Object.entries(more)) writeFileSync(inside(path), text)
  }

  return {
    path: inside,
    write,
    /** Installs the client as npm would. */
    async addClient() {
      archive ??= Buffer.from(clientPackage(), 'base64')
      writeFileSync(inside('client.tgz'), archive)
      const home = inside('node_modules/hostline-client')
      mkdirSync(home)
      const unpack = ['tar', '--extract', '--file', 'client.tgz', '--directory', home]
      return start([...unpack, '--strip-components=1'])
    },
    /** Runs TypeScript's compiler in strict mode. */
    check: (...args: string[]) => start([compiler, '--noEmit', '--strict', ...args]),
    /** Runs a tool of test/consumers under Node. */
    tool: (name: string, ...args: string[]) =>
      start([inside(`node_modules/.bin/${name}`), ...args]),
    /** Runs a script under Node. */
    node: (script: string, ...args: string[]) => start(['node', script, ...args]),
    node22: (script: string, ...args: string[]) =>
      start([inside('node_modules/node22/bin/node'), script, ...args]),
    [Symbol.dispose]: directory[Symbol.dispose],
  }

  /** @returns the exit code and all output */
  async function start(command: string[]) {
    const env = { ...process.env, ...oneThread }
    const child = Bun.spawn(command, { cwd: directory.path, env, stdout: 'pipe', stderr: 'pipe' })
    const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()])
    return { exitCode: await child.exited, output: `${out}${err}` }
  }
}
