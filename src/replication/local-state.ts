import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { moveInto } from '../db/backup.ts'
import type { LogPosition } from './log.ts'

/** The local state of a node, in `replica.json` of its data directory. */
type NodeState = {
  node: string
  /** The position of the entry after which the database, or the copy, was stored. */
  place?: LogPosition
  /** The fingerprint of the database file at that time; absent for a copy. */
  stamp?: string
  /** Set by `hostline restore s3`: this database must lead, even from a moment in the past. */
  restored?: 'newest' | 'past'
}

const stateFile = 'replica.json'
/** The copy of a standby. Its name differs, so that commands do not use it as a database. */
export const copyFile = 'replica.db'

/** @throws Error when the file has other content */
export function openLocalState(directory: string) {
  const path = join(directory, stateFile)
  const known: NodeState | undefined = existsSync(path)
    ? JSON.parse(readFileSync(path, 'utf8'))
    : undefined
  const node = known?.node ?? `${hostname()}-${randomBytes(3).toString('hex')}`
  let remembered: NodeState = known ?? { node }

  return {
    node,
    get: () => remembered,
    /** Replaces everything but the node's name; safe against a power cut. */
    set(state: Omit<NodeState, 'node'>): void {
      remembered = { node, ...state }
      // The old file may be a symbolic link.
      rmSync(`${path}.new`, { force: true })
      writeFileSync(`${path}.new`, JSON.stringify(remembered), { mode: 0o600, flag: 'wx' })
      moveInto(`${path}.new`, path)
    },
  }
}

/** A fingerprint that changes with each change of a file. */
export function fingerprintOf(path: string): string {
  const { ino, size, mtimeNs } = statSync(path, { bigint: true })
  return `${ino} ${size} ${mtimeNs}`
}
