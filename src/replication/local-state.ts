import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { moveInto } from '../db/backup.ts'
import type { Place } from './log.ts'

/** What a node remembers of itself, in `replica.json` of its data directory. */
type Remembered = {
  node: string
  /** The database, or the copy, is the state after the entry there. */
  place?: Place
  /** Of the database at that time; absent while `place` is that of a copy. */
  stamp?: string
  /** `hostline restore s3` has put the database there: an operator wants it to lead, also from a moment in the past. */
  restored?: 'newest' | 'past'
}

const stateFile = 'replica.json'
/** The copy of a standby. It has a name of its own, so that no command takes it for a database. */
export const copyFile = 'replica.db'

/** @throws Error when the file is there and holds something else */
export function openLocalState(directory: string) {
  const path = join(directory, stateFile)
  const known: Remembered | undefined = existsSync(path)
    ? JSON.parse(readFileSync(path, 'utf8'))
    : undefined
  const node = known?.node ?? `${hostname()}-${randomBytes(3).toString('hex')}`
  let remembered: Remembered = known ?? { node }

  return {
    node,
    get: () => remembered,
    /** Remembers this and nothing else but who it is; safe against a power cut. */
    set(state: Omit<Remembered, 'node'>): void {
      remembered = { node, ...state }
      // What lies there may be a link.
      rmSync(`${path}.new`, { force: true })
      writeFileSync(`${path}.new`, JSON.stringify(remembered), { mode: 0o600, flag: 'wx' })
      moveInto(`${path}.new`, path)
    },
  }
}

/** Changes with each change of a file. */
export function stampOf(path: string): string {
  const { ino, size, mtimeNs } = statSync(path, { bigint: true })
  return `${ino} ${size} ${mtimeNs}`
}
