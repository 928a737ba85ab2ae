import type { Replica, ReplicaStats } from '../../src/replication/replication.ts'

export const replicatedTo = { REPLICA_S3_URL: 's3://key:secret@127.0.0.1:1/bucket?tls=off' }

/** A replica that ships nothing and reports the given state. */
export function replicaWithStats(stats: Partial<ReplicaStats> = {}): Replica {
  const nothing = () => {}
  return {
    capture: nothing,
    sync: (real) => real(),
    guard: (write) => write,
    serve: nothing,
    isWritable: () => true,
    handOver: new Promise(nothing),
    isCutOff: () => false,
    takeSnapshot: async () => ({ name: '', at: 0 }),
    agree: async () => {},
    requestHandOver: nothing,
    lastDrillAt: () => undefined,
    noteDrill: nothing,
    begin: nothing,
    drain: async () => {},
    close: nothing,
    stats: () => ({
      role: 'leader',
      lagMilliseconds: 0,
      objects: 1,
      bytes: 1,
      failures: 0,
      isRestorable: true,
      snapshotAt: Date.now(),
      ...stats,
    }),
  }
}
