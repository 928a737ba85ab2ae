import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { size } from './faults.ts'

/** An edit of a source that breaks a rule; `from` occurs exactly once in `file`. */
export type Mutation = { name: string; file: string; from: string; to: string }

const root = join(import.meta.dir, '../..')

/** Tests that a model detects each mutation, by the matching tests of its file. */
export function describeMutations(mutations: Mutation[], testFile: string, title: string) {
  describe('the model detects each deliberately broken rule', () => {
    test('each text that a mutation replaces occurs once in the sources', () => {
      expect(mutations.filter((mutation) => countOf(mutation) !== 1)).toEqual([])
    })

    test.each(mutations.slice(0, size(mutations.length, 0)))('$name', async (mutation) => {
      const found = await findMutation(mutation, testFile, title)
      console.log(`${mutation.name}: ${found}`)
      expect(found).toBeDefined()
    })
  })
}

/** The occurrences of the replaced text in the sources. */
const countOf = ({ file, from }: Mutation): number =>
  readFileSync(join(root, file), 'utf8').split(from).length - 1

/** Runs the matching tests of a file over mutated sources, with FAULTS=short.
 *  @returns the failure that they report; undefined when they passed */
async function findMutation(
  mutation: Mutation,
  testFile: string,
  title: string,
): Promise<string | undefined> {
  const child = Bun.spawn(
    [
      process.execPath,
      'test',
      '--bail=1',
      '--timeout=300000',
      '--preload=./test/support/model-mutate.ts',
      `--test-name-pattern=${title}`,
      testFile,
    ],
    {
      cwd: root,
      env: { ...process.env, FAULTS: 'short', MUTATION: JSON.stringify(mutation) },
      stdout: 'pipe',
      stderr: 'pipe',
    },
  )
  const output = await new Response(child.stderr).text()
  if ((await child.exited) === 0) return undefined
  // A mutation that does not compile proves nothing.
  const found = /seed \d+ breaks a rule[\s\S]*?(?=\n\s+at )/.exec(output)
  if (!found) throw new Error(output)
  return found[0]
}
