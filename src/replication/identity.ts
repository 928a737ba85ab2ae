import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fdatasync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { moveInto } from '../db/backup.ts'
import { explainFailure, openPrivateFile, replicaStateFile } from '../db/open.ts'
import { giveToOwner } from '../db/pieces.ts'
import { StartError } from '../lib/errors.ts'
import {
  comparePositions,
  type Entry,
  type LogPosition,
  parsePosition,
  positionName,
} from './log.ts'

/** The local state of a node, in `replica.json` of its data directory. */
type NodeState = {
  node: string
  /** The machine that the directory belongs to; absent when the machine has no id, as in most containers. */
  machine?: string | undefined
  /** The starts that may have written entries, newest first, back to the last one seen in the log. */
  starts?: string[]
  /** The position of the entry up to which the copy of a standby is complete. */
  place?: LogPosition | undefined
  /** Whether the log allowed a standby when this node last read it. */
  pair?: boolean | undefined
  /** Set by `hostline restore s3` and `replica init --force`: the end of the log at that time. The database here leads
   *  from there, whatever the log contains. */
  adopts?: LogPosition | undefined
  /** When the last drill succeeded, in ms since the epoch. */
  drilledAt?: number | undefined
}

export type Identity = ReturnType<typeof openIdentity>

export const positionFile = 'replica.position'
const syncFile = promisify(fdatasync)

/** Knows what this directory has written to the log, so that an older copy of it, or a clone, is recognised.
 *  @throws StartError when the file cannot be read or has other content */
export function openIdentity(directory: string) {
  const path = join(directory, replicaStateFile)
  const notePath = join(directory, positionFile)
  const known: NodeState | undefined = existsSync(path) ? readState(path) : undefined
  const node = known?.node ?? `${hostname()}-${randomBytes(3).toString('hex')}`
  let state: NodeState = known ?? { node }

  /** Safe against a power cut. */
  function set(changes: Partial<NodeState>): void {
    state = { ...state, ...changes }
    // The old file may be a symbolic link.
    rmSync(`${path}.new`, { force: true })
    writeFileSync(`${path}.new`, JSON.stringify(state), { mode: 0o600, flag: 'wx' })
    moveInto(`${path}.new`, path)
    giveToOwner(directory, [replicaStateFile])
  }

  function readNote(): LogPosition | undefined {
    return existsSync(notePath) ? parsePosition(readFileSync(notePath, 'utf8').trim()) : undefined
  }

  /** Whether a start of this directory wrote an entry. */
  const wrote = ({ start, node: writer }: Entry) =>
    start === undefined ? writer === node : state.starts?.includes(start) === true

  return {
    node,
    get: () => state,
    set,
    readNote,

    /** Notes a position before an entry is written there. Resolves when that is safe against a power cut. */
    async note(place: LogPosition): Promise<void> {
      const file = openPrivateFile(notePath)
      giveToOwner(directory, [positionFile])
      writeSync(file, `${positionName(place)}\n`, 0)
      await syncFile(file).finally(() => closeSync(file))
    },

    wrote,

    /** Whether this directory wrote the last entry, and so contains everything that the log does. */
    hasWritten(place: LogPosition, entry: Entry): boolean {
      if (entry.start === undefined || !wrote(entry)) return wrote(entry)
      const note = readNote()
      return isHere(state) && note !== undefined && comparePositions(place, note) <= 0
    },
    isOfThisMachine: () => isHere(state),

    /** Makes a new start known before its first entry is written.
     *  @param last the start that wrote the last entry; in an empty log any may still be stored late */
    begin(last: string | undefined, pair: boolean): string {
      const start = randomBytes(8).toString('hex')
      const { starts = [] } = state
      const since = last === undefined ? starts.length : starts.indexOf(last)
      set({ machine: readMachine(), starts: [start, ...starts.slice(0, since + 1)], pair })
      return start
    },

    /** Forgets what this directory wrote, because its database was replaced. */
    adopt(end: LogPosition | undefined): void {
      rmSync(notePath, { force: true })
      set({ machine: readMachine(), starts: [], place: undefined, adopts: end })
    },
  }
}

function readState(path: string): NodeState {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (cause) {
    throw new StartError(`cannot read ${path}: ${explainFailure(cause)}`, { cause })
  }
}

const isHere = ({ machine }: NodeState) =>
  machine === undefined || readMachine() === undefined || machine === readMachine()

/** https://www.freedesktop.org/software/systemd/man/machine-id.html */
function readMachine(): string | undefined {
  try {
    return /^[0-9a-f]{32}$/m.exec(readFileSync('/etc/machine-id', 'utf8'))?.[0]
  } catch {
    return undefined
  }
}
