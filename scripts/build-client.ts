import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const project = fileURLToPath(new URL('..', import.meta.url))
const folder = join(project, 'client')

/** Modules beside the client itself. They import only types of the state. */
const modules = ['state', 'react', 'preact', 'vue', 'svelte', 'webhook']
/** The state's list is bundled with it, and has types of its own. */
const parts = [...modules, 'list']

/** Other modules import the client as it is published, so that its errors are of the same classes everywhere. */
const beside = ['--external', '*/client.ts']
const published = (script: string) =>
  script.replaceAll(/(["'])\.\/client\.ts\1/g, '$1./client.js$1')

let emitted: Map<string, string> | undefined

/** Builds the package in client/dist: `bun scripts/build-client.ts` prints the path of its archive. */
if (import.meta.main) console.log(packClient(join(folder, 'dist')))

/** Packs the npm package.
 *  @returns the path of the archive */
export function packClient(destination: string): string {
  const built = mkdtempSync(join(tmpdir(), 'hostline-client-'))
  for (const name of ['package.json', 'README.md', 'service-worker.js']) {
    copyFileSync(join(folder, name), join(built, name))
  }
  copyFileSync(join(project, 'LICENSE'), join(built, 'LICENSE'))
  const scripts = ['client', ...modules]
  const entries = scripts.map((name) => join(folder, 'src', `${name}.ts`))
  const build = [process.execPath, 'build', ...entries, '--target=browser', '--packages=external']
  run([...build, ...beside, '--format=esm', '--sourcemap=linked', '--outdir', built])
  for (const name of scripts) {
    const script = join(built, `${name}.js`)
    writeFileSync(script, published(readFileSync(script, 'utf8')))
    const map = JSON.parse(readFileSync(`${script}.map`, 'utf8'))
    // Bun names them from the temporary folder, with the path of this checkout.
    const sources = map.sources.map((path: string) => `src/${basename(path)}`)
    writeFileSync(`${script}.map`, JSON.stringify({ ...map, sources }))
  }
  const types = emitTypes()
  writeFileSync(join(built, 'client.d.ts'), mergeTypes(types, 'client'))
  for (const name of parts) writeFileSync(join(built, `${name}.d.ts`), partTypes(types, name))
  mkdirSync(destination, { recursive: true })
  const pack = [process.execPath, 'pm', 'pack', '--quiet', '--destination', destination]
  const archive = run(pack, built).trim()
  rmSync(built, { recursive: true })
  return archive
}

/** The npm package in Base64, for the service, which serves it at `/hostline-client.tgz`. */
export function clientPackage(): string {
  const destination = mkdtempSync(join(tmpdir(), 'hostline-client-'))
  const bytes = readFileSync(packClient(destination))
  rmSync(destination, { recursive: true })
  return bytes.toString('base64')
}

/** The client as one module. This function, `stateScript`, `clientTypes` and `clientPackage` run as macros while the executable is
 *  built, where `Bun.build` is not available. */
export const clientScript = (): string => minified('client')

/** The stores as one module beside the client's. */
export const stateScript = (): string => minified('state')

function minified(name: string): string {
  const build = [process.execPath, 'build', join(folder, `src/${name}.ts`), '--target=browser']
  return published(run([...build, ...beside, '--format=esm', '--minify']))
}

/** The types of the client in one file. */
export const clientTypes = (): string => mergeTypes(emitTypes(), 'client')

/** The declarations of each module. */
function emitTypes(): Map<string, string> {
  emitted ??= runCompiler()
  return emitted
}

function runCompiler(): Map<string, string> {
  const output = mkdtempSync(join(tmpdir(), 'hostline-client-'))
  const compiler = join(project, 'node_modules/typescript/bin/tsc')
  const emit = ['--noEmit', 'false', '--declaration', '--emitDeclarationOnly', '--outDir', output]
  run([process.execPath, compiler, '--project', folder, ...emit])
  const modules = new Map(
    readdirSync(output).map((name) => [
      name.replace('.d.ts', ''),
      readFileSync(join(output, name), 'utf8'),
    ]),
  )
  rmSync(output, { recursive: true })
  return modules
}

function partTypes(modules: Map<string, string>, name: string): string {
  return (modules.get(name) ?? '').replaceAll(/\.\/([\w-]+)\.ts(?=["'])/g, (_, from: string) =>
    parts.includes(from) ? `./${from}.js` : './client.js',
  )
}

/** Merges modules into one: every name is unique (the compiler reports a clash). Only the names of the entry and of
 *  the contract are exported. */
function mergeTypes(modules: Map<string, string>, entry: string): string {
  const all = [...modules].flatMap(([name, text]) => (parts.includes(name) ? [] : text)).join('')
  const declarations = all
    .replaceAll(/^(import|export) [^;]*? from '[^']*';\n/gm, '')
    .replaceAll(/^export \{\};\n/gm, '')
    .replaceAll(/^export (?=declare|type|interface)/gm, '')
    .replaceAll(/import\("\.\/[\w-]+\.ts"\)\./g, '')
  const own = modules.get(entry) ?? ''
  const named = [...own.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, names = '']) =>
    names.split(',').flatMap((name) => name.trim() || []),
  )
  const declared = ['contract', 'schema', entry].flatMap((name) => declaredIn(modules.get(name)))
  const isValue = (name: string) =>
    all.includes(`class ${name} `) || all.includes(`function ${name}(`)
  const names = [...new Set([...named, ...declared].map((name) => name.replace('type ', '')))]
  const list = names.map((name) => (isValue(name) ? name : `type ${name}`))
  return `${declarations}export { ${list.join(', ')} };\n`
}

/** The exported declarations of a module. */
function declaredIn(text = ''): string[] {
  const found = text.matchAll(/^export (?:declare )?(?:type|interface|function|class) (\w+)/gm)
  return [...found].map(([, name = '']) => name)
}

function run(command: string[], cwd = project): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd })
  if (exitCode !== 0) throw new Error(`${command.join(' ')}:\n${stdout}${stderr}`)
  return stdout.toString()
}
