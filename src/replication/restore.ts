import { Database } from 'bun:sqlite'
import { type FileStorage, isFileKey } from '../files/storage.ts'
import { StartError } from '../lib/errors.ts'
import { openFollower } from './follower.ts'
import { comparePositions, type LogPosition } from './log.ts'
import type { Node } from './node.ts'

/** Creates a database file from the bucket.
 *  @param until the moment to restore in ms since the epoch; default: the newest state
 *  @throws Error · StoreError */
export async function restoreDatabase(
  { store, shared, ...node }: Node,
  path: string,
  until = Number.POSITIVE_INFINITY,
): Promise<{ place: LogPosition; isNewest: boolean }> {
  const head = await node.findHead()
  if (!head) throw new StartError('there is no log in the bucket')
  const onEntry = (entry: { at: number }) => entry.at <= until
  const follower = await openFollower({ store, shared, path, onEntry }, { until })
  try {
    await follower.catchUp()
    await follower.sync()
    const place = follower.place()
    return { place, isNewest: comparePositions(follower.last(), head.place) >= 0 }
  } finally {
    await follower.close()
  }
}

const filesAtOnce = 4

/** Downloads the files listed in a restored database. Their names are untrusted, because invalid ones could be paths.
 *  @returns the numbers of files missing in the bucket, and of invalid names */
export async function restoreFiles({ store }: Node, databasePath: string, disk: FileStorage) {
  const named = namedFiles(databasePath)
  const ids = named.filter(isFileKey)
  let missing = 0
  async function fetchOne(id: string) {
    const object = await store.open(`files/${id}`)
    if (object?.body) await disk.write(id, object.body)
    else missing++
  }
  for (let n = 0; n < ids.length; n += filesAtOnce) {
    await Promise.all(ids.slice(n, n + filesAtOnce).map(fetchOne))
  }
  return { missing, foreign: named.length - ids.length }
}

function namedFiles(databasePath: string): string[] {
  const database = new Database(databasePath)
  try {
    const query = 'SELECT id FROM files WHERE stored_at IS NOT NULL'
    return database.query(query).values().flat().map(String)
  } finally {
    database.close()
  }
}
