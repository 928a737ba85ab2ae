import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A new folder that goes with the scope: `using directory = temporaryDirectory()`. */
export function temporaryDirectory() {
  const path = mkdtempSync(join(tmpdir(), 'hostline-test-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}
