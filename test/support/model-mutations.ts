import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** An edit of a source that breaks a rule; `from` occurs exactly once in `file`. */
export type Mutation = { name: string; file: string; from: string; to: string }

const root = join(import.meta.dir, '../..')

/** The occurrences of the replaced text in the sources. */
export const countOf = ({ file, from }: Mutation): number =>
  readFileSync(join(root, file), 'utf8').split(from).length - 1

/** Runs the matching tests of a file over mutated sources, with FAULTS=short.
 *  @returns the failure that they report; undefined when they passed */
export async function findMutation(
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
