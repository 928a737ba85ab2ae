import { existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A new folder that is removed with the scope: `using directory = temporaryDirectory()`. */
export function temporaryDirectory(parent = tmpdir()) {
  const path = mkdtempSync(join(parent, 'hostline-test-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

const memory = '/dev/shm'
const enoughBytes = 2 ** 30

/** A folder in memory, where syncs cost nothing; containers may have little of it. */
export function memoryFolder(): string {
  if (!existsSync(memory)) return tmpdir()
  const { bavail, bsize } = statfsSync(memory)
  return bavail * bsize > enoughBytes ? memory : tmpdir()
}
