import { Counter, Histogram, type Registry } from 'prom-client'
import { addGauges } from './gauges.ts'

export type StorageStats = { databaseBytes: number; logBytes: number }

const buckets = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5]

/** Counts commits and syncs; times in milliseconds. */
export function countCommits(registry: Registry) {
  const registers = [registry]
  const duration = new Histogram({
    name: 'hostline_commit_duration_seconds',
    help: 'How long a commit with the writes in it held the event loop.',
    buckets,
    registers,
  })
  const writes = new Histogram({
    name: 'hostline_commit_writes',
    help: 'Writes that shared a commit.',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
    registers,
  })
  const failed = new Counter({
    name: 'hostline_commits_failed_total',
    help: 'Commits of which nothing was written.',
    registers,
  })
  const sync = new Histogram({
    name: 'hostline_sync_duration_seconds',
    help: 'How long the disk took to make commits safe, beside the event loop.',
    buckets,
    registers,
  })

  return {
    committed(size: number, milliseconds: number) {
      duration.observe(milliseconds / 1_000)
      writes.observe(size)
    },
    commitFailed: () => failed.inc(),
    synced: (milliseconds: number) => sync.observe(milliseconds / 1_000),
  }
}

/** Tells how large the files are. */
export function readStorage(registry: Registry, stats: () => StorageStats) {
  addGauges(
    registry,
    {
      hostline_database_bytes: 'Size of the database file.',
      hostline_database_log_bytes: 'Size of the write-ahead log, which is used again and again.',
    },
    () => {
      const { databaseBytes, logBytes } = stats()
      return { hostline_database_bytes: databaseBytes, hostline_database_log_bytes: logBytes }
    },
  )
}
