import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { plugin } from 'bun'
import type { Mutation } from './model-mutations.ts'

// Preloaded by test processes that run with a mutation.
const { file, from, to }: Mutation = JSON.parse(process.env['MUTATION'] ?? '')
const mutated = join(import.meta.dir, '../..', file)

plugin({
  name: 'mutation',
  setup(build) {
    build.onLoad({ filter: new RegExp(`^${RegExp.escape(mutated)}$`) }, () => ({
      contents: readFileSync(mutated, 'utf8').replace(from, () => to),
      loader: 'ts',
    }))
  },
})
