import { mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { version } from '../package.json' with { type: 'json' }
import { pageInputs } from './build-pages.ts'

/** Builds the executable: `bun scripts/build.ts [FILE]`, dist/hostline by default. */
if (import.meta.main) {
  const outfile = process.argv[2] ?? source('dist/hostline')
  await build(outfile)
  console.log(`${outfile} ${version}`)
}

/** @param target for another platform, such as `bun-linux-arm64`: Bun downloads its runtime from the npm registry
 *  @returns the bundled files, relative to the project
 *  @throws when the build failed */
export async function build(outfile: string, target?: Bun.Build.CompileTarget): Promise<string[]> {
  mkdirSync(dirname(outfile), { recursive: true })
  // The source maps of the chunks come beside the executable, which contains them, too.
  const folder = mkdtempSync(`${outfile}-`)
  try {
    const built = join(folder, basename(outfile))
    const inputs = await compile(built, target)
    renameSync(built, outfile)
    return inputs
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function compile(outfile: string, target: Bun.Build.CompileTarget | undefined) {
  const commit = findCommit()
  const { metafile } = await Bun.build({
    // Workers are loaded by name at run time, so they are entry points of their own.
    entrypoints: ['main', 'db/checkpoint-worker', 'modules/files/image-worker'].map((name) =>
      source(`src/${name}.ts`),
    ),
    root: source('src'),
    // Files in the working directory must not change the behaviour of the executable.
    compile: { outfile, autoloadDotenv: false, autoloadBunfig: false, ...(target && { target }) },
    bytecode: true,
    // A command or a start loads only the code that it runs.
    splitting: true,
    format: 'esm',
    // Choice: not minified. That saves 0.8 of 120 MB.
    sourcemap: 'linked',
    metafile: true,
    define: commit === undefined ? {} : { HOSTLINE_COMMIT: JSON.stringify(commit) },
  })
  return [...Object.keys(metafile?.inputs ?? {}), ...pageInputs()]
}

/** Undefined outside of a repository and without git; marked when files differ from it. */
function findCommit(): string | undefined {
  if (!Bun.which('git')) return undefined
  const command = ['git', 'describe', '--always', '--dirty', '--exclude=*']
  const { success, stdout } = Bun.spawnSync(command, { cwd: source('.'), stderr: 'ignore' })
  return success ? stdout.toString().trim() : undefined
}

function source(path: string) {
  return fileURLToPath(new URL(`../${path}`, import.meta.url))
}
