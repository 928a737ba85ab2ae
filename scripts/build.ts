import { fileURLToPath } from 'node:url'
import { version } from '../package.json' with { type: 'json' }
import { pageInputs } from './build-pages.ts'

/** Makes the executable with everything in it: `bun scripts/build.ts [FILE]`, dist/hostline by default. */
if (import.meta.main) {
  const outfile = process.argv[2] ?? source('dist/hostline')
  await build(outfile)
  console.log(`${outfile} ${version}`)
}

/** @param target for another platform, such as `bun-linux-arm64`: Bun fetches its runtime from the npm registry
 *  @returns the files that went in, relative to the project
 *  @throws when it was not built */
export async function build(outfile: string, target?: Bun.Build.CompileTarget): Promise<string[]> {
  const { metafile } = await Bun.build({
    // The Worker is loaded by its name at run time, so it is an entry point of its own.
    entrypoints: [source('src/main.ts'), source('src/db/checkpoint-worker.ts')],
    root: source('src'),
    // What lies in the folder where it is started must not change what it does.
    compile: { outfile, autoloadDotenv: false, autoloadBunfig: false, ...(target && { target }) },
    bytecode: true,
    format: 'esm',
    // Choice: not minified. That saves 0.8 of 120 MB.
    sourcemap: 'linked',
    metafile: true,
  })
  return [...Object.keys(metafile?.inputs ?? {}), ...pageInputs()]
}

function source(path: string) {
  return fileURLToPath(new URL(`../${path}`, import.meta.url))
}
