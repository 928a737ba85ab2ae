import { Database } from 'bun:sqlite'
import type { CheckpointReply, CheckpointRequest } from './checkpointer.ts'

// Runs in a Worker with its own connection, because a checkpoint blocks on the disk.
declare const self: Worker

let database: Database | undefined

self.onmessage = ({ data }: MessageEvent<CheckpointRequest>) => {
  postMessage(answer(data))
}

function answer(request: CheckpointRequest): CheckpointReply {
  if (request.type === 'close') {
    database?.close()
    return { type: 'closed' }
  }
  try {
    database ??= new Database(request.path)
    const query = 'PRAGMA wal_checkpoint(PASSIVE)'
    const result = database.query<{ log: number; checkpointed: number }, []>(query).get()
    return { type: 'done', walFrames: result?.log ?? 0, copiedFrames: result?.checkpointed ?? 0 }
  } catch (error) {
    const { code = 'unknown', message } = error as { code?: string; message: string }
    return { type: 'failed', code, message }
  }
}
