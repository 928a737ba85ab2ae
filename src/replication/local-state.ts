import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { moveInto } from '../db/backup.ts'
import type { Place } from './log.ts'

/** A node's own state, in `replica.json` of its data directory. */
type Remembered = {
  node: string
  /** The database, or the copy, is the state after this entry. */
  place?: Place
  /** Fingerprint of the database file at that time; absent while `place` is that of a copy. */
  stamp?: string
  /** `hostline restore s3` has put the database there. The operator wants it to lead, even from a moment in the past. */
  restored?: 'newest' | 'past'
}

const stateFile = 'replica.json'
/** The copy of a standby. Its own name keeps commands from taking it for a database. */
export const copyFile = 'replica.db'

/** @throws Error when the file has other content */
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
    /** Replaces everything but the node's name; safe against a power cut. */
    set(state: Omit<Remembered, 'node'>): void {
      remembered = { node, ...state }
      // The old file may be a symbolic link.
      rmSync(`${path}.new`, { force: true })
      writeFileSync(`${path}.new`, JSON.stringify(remembered), { mode: 0o600, flag: 'wx' })
      moveInto(`${path}.new`, path)
    },
  }
}

/** A fingerprint that changes with each change of a file. */
export function stampOf(path: string): string {
  const { ino, size, mtimeNs } = statSync(path, { bigint: true })
  return `${ino} ${size} ${mtimeNs}`
}
