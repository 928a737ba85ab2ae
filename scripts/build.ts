import packageJson from '../package.json' with { type: 'json' }

/** Makes dist/hostline: one executable with everything in it. */
const built = await Bun.build({
  entrypoints: ['./src/main.ts', './src/db/checkpoint-worker.ts'],
  compile: {
    outfile: './dist/hostline',
    autoloadDotenv: false,
    autoloadBunfig: false,
  },
  bytecode: true,
  format: 'esm',
  sourcemap: 'linked',
})
for (const message of built.logs) console.error(String(message))
console.log(`dist/hostline ${packageJson.version}`)
