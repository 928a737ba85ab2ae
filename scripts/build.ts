import { fileURLToPath } from 'node:url'
import { version } from '../package.json' with { type: 'json' }

/** Makes the executable with everything in it: `bun scripts/build.ts [FILE]`, dist/hostline by default. */

const source = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url))
const outfile = process.argv[2] ?? source('dist/hostline')

const { logs, success } = await Bun.build({
  // The Worker is loaded by its name at run time, so it is an entry point of its own.
  entrypoints: [source('src/main.ts'), source('src/db/checkpoint-worker.ts')],
  root: source('src'),
  // What lies in the folder where it is started must not change what it does.
  compile: { outfile, autoloadDotenv: false, autoloadBunfig: false },
  bytecode: true,
  format: 'esm',
  sourcemap: 'linked',
})
for (const message of logs) console.error(String(message))
if (!success) process.exit(1)
console.log(`${outfile} ${version}`)
