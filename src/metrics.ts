import { readdirSync, readFileSync, statSync } from 'node:fs'
// The library's index would also load HTTP clients and OpenTelemetry, which takes a fifth of the startup time.
import Counter from 'prom-client/lib/counter.js'
import Gauge from 'prom-client/lib/gauge.js'
import Histogram from 'prom-client/lib/histogram.js'
import Registry from 'prom-client/lib/registry.js'
import type { Config } from './config.ts'
import type { Core } from './core.ts'
import type { Storage } from './db/storage.ts'
import { readCertificate, type TlsFiles } from './http/certificate.ts'
import type { Answered } from './http/observe-requests.ts'
import type { JobOutcome } from './jobs/runner.ts'
import type { Clock } from './lib/clock.ts'
import { freeBytesAt } from './lib/free-space.ts'
import { closeCodes } from './realtime/hub.ts'
import type { ReplicaStats } from './replication/replication.ts'

export type Metrics = ReturnType<typeof createMetrics>

/** Gauges are read at each scrape.
 *  @param sharedMilliseconds for which scrapes share a result: collecting takes 3 ms and has no rate limit */
export function createMetrics(version: string, clock: Clock, sharedMilliseconds = 1_000) {
  const registry = new Registry()
  readProcess(registry, version)
  let shared = { at: Number.NEGATIVE_INFINITY, text: Promise.resolve('') }

  return {
    contentType: registry.contentType,
    text(): Promise<string> {
      const now = performance.now()
      if (now - shared.at >= sharedMilliseconds) shared = { at: now, text: registry.metrics() }
      return shared.text
    },
    countRequest: countRequests(registry),
    channel: countChannel(registry),
    commits: countCommits(registry),
    jobs: countJobs(registry),
    read({ outbox, hub, audit }: Core, storage: Storage['stats'], droppedEvents: () => number) {
      addReadings(registry, {
        hostline_frames_dropped_total: [
          'Frames not delivered to slow readers.',
          () => hub.stats().dropped,
        ],
        hostline_sockets: ['Open sockets.', () => hub.stats().sockets],
        hostline_socket_users: ['Users with an open socket.', () => hub.stats().users],
        hostline_database_bytes: ['Size of the database file.', () => storage().databaseBytes],
        hostline_database_wal_bytes: [
          'Size of the write-ahead log, which is reused.',
          () => storage().walBytes,
        ],
        hostline_last_backup_timestamp_seconds: [
          'Time of the last backup since the epoch; 0 means never.',
          () => (audit.findLatest('backup_made')?.at ?? 0) / 1_000,
        ],
        hostline_outbox_waiting: [
          'Waiting jobs; 10000 means that many or more.',
          () => outbox.stats().waiting,
        ],
        hostline_outbox_dead: [
          'Dead jobs; 10000 means that many or more.',
          () => outbox.stats().dead,
        ],
        hostline_outbox_oldest_seconds: [
          'Time since the longest due job became due, webhooks aside.',
          () => outbox.stats().oldestAge / 1_000,
        ],
        hostline_webhook_events_dropped_total: [
          'Events dropped because too many waited for their endpoint.',
          droppedEvents,
        ],
      })
    },
    readMachine({ dataDir, tls }: Pick<Config, 'dataDir' | 'tls'>) {
      addReadings(registry, {
        hostline_disk_free_bytes: ['Free space on the disk.', () => freeBytesAt(dataDir)],
        ...(tls && {
          hostline_certificate_expiry_timestamp_seconds: [
            'End of the certificate in TLS_CERT since the epoch; 0 when it cannot be read.',
            () => endOf(tls) / 1_000,
          ] as const,
        }),
      })
    },
    readReplica: (stats: () => ReplicaStats) => readReplica(registry, stats),
    stop: watchEventLoop(registry, clock),
  }
}

function endOf(tls: TlsFiles): number {
  try {
    return readCertificate(tls).endsAt
  } catch {
    return 0
  }
}

function readReplica(registry: Registry, stats: () => ReplicaStats) {
  addReadings(registry, {
    hostline_replica_leader: [
      '1 on the leader as long as no other node may lead, else 0.',
      () => Number(stats().role === 'leader'),
    ],
    hostline_replica_position: [
      'Position of the newest stored log entry; on a standby, of the newest applied one.',
      () => stats().place?.position ?? 0,
    ],
    hostline_replica_lag_seconds: [
      'Age of the oldest change that is not in the bucket yet; on a standby, age of its newest entry.',
      () => stats().lagMilliseconds / 1_000,
    ],
    hostline_replica_last_stored_timestamp_seconds: [
      'Time of the newest stored entry since the epoch; 0 means never.',
      () => (stats().storedAt ?? 0) / 1_000,
    ],
    hostline_replica_restorable: [
      '0 while the bucket has no snapshot from which the log continues, else 1.',
      () => Number(stats().isRestorable),
    ],
    hostline_replica_last_drill_timestamp_seconds: [
      'Time since the epoch at which the bucket was last restored for a try; 0 means never.',
      () => (stats().drilledAt ?? 0) / 1_000,
    ],
    hostline_replica_drill_failed: [
      '1 when the last try to restore the bucket failed, else 0.',
      () => Number(stats().drillFailure !== undefined),
    ],
    hostline_replica_last_snapshot_timestamp_seconds: [
      'Time of the newest snapshot since the epoch; 0 means never.',
      () => (stats().snapshotAt ?? 0) / 1_000,
    ],
    hostline_replica_objects_total: ['Objects appended to the log.', () => stats().objects],
    hostline_replica_bytes_total: ['Bytes appended to the log.', () => stats().bytes],
    hostline_replica_failures_total: ['Failed requests to the bucket.', () => stats().failures],
  })
}

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Counts requests by route pattern. All unknown paths share one label value, because clients can invent them. */
function countRequests(registry: Registry) {
  const duration = new Histogram({
    name: 'hostline_http_request_duration_seconds',
    help: 'Time from the head of a request to its response, or to the start of a streamed one; route is unknown for unknown paths and preflights.',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers: [registry],
  })

  return ({ request, status, milliseconds, context }: Answered) => {
    const method = methods.has(request.method) ? request.method : 'other'
    const route = context?.route?.path ?? 'unknown'
    duration.observe({ method, route, status }, milliseconds / 1_000)
  }
}

const ownCodes = new Set<number>(Object.values(closeCodes))

function countChannel(registry: Registry) {
  const registers = [registry]
  // Counting with the library would take 3 % of the time of a message.
  const received = new Map<string, number>()
  new Counter({
    name: 'hostline_frames_received_total',
    help: 'Frames from clients by type; malformed: invalid, refused: over the limit.',
    labelNames: ['type'],
    registers,
    collect() {
      this.reset()
      for (const [type, count] of received) this.inc({ type }, count)
    },
  })
  let sent = 0
  addReadings(registry, { hostline_frames_sent_total: ['Frames handed to sockets.', () => sent] })
  const closed = new Counter({
    name: 'hostline_sockets_closed_total',
    help: 'Closed sockets by close code.',
    labelNames: ['code'],
    registers,
  })

  return {
    received: (type: string) => received.set(type, (received.get(type) ?? 0) + 1),
    sent() {
      sent++
    },
    // Clients may close with any of four thousand codes. Only codes of the protocol and of this server get a label.
    closed(code: number) {
      const isOfProtocol = code >= 1000 && code <= 1015
      closed.inc({ code: isOfProtocol || ownCodes.has(code) ? code : 'other' })
    },
  }
}

const commitBuckets = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5,
]

function countCommits(registry: Registry) {
  const registers = [registry]
  const duration = new Histogram({
    name: 'hostline_commit_duration_seconds',
    help: 'Time for which a commit and its writes blocked the event loop.',
    buckets: commitBuckets,
    registers,
  })
  const writes = new Histogram({
    name: 'hostline_commit_writes',
    help: 'Writes per commit.',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
    registers,
  })
  const failed = new Counter({
    name: 'hostline_commits_failed_total',
    help: 'Failed commits, of which nothing was written.',
    registers,
  })
  const sync = new Histogram({
    name: 'hostline_sync_duration_seconds',
    help: 'Duration of syncs to the disk, outside the event loop.',
    buckets: commitBuckets,
    registers,
  })

  return {
    onCommit(size: number, milliseconds: number) {
      duration.observe(milliseconds / 1_000)
      writes.observe(size)
    },
    onCommitFailure: () => failed.inc(),
    onSync: (milliseconds: number) => sync.observe(milliseconds / 1_000),
  }
}

function countJobs(registry: Registry) {
  const total = new Counter({
    name: 'hostline_jobs_total',
    help: 'Runs of jobs by kind and outcome; again: unfinished, continues later; failed: retried later.',
    labelNames: ['kind', 'outcome'],
    registers: [registry],
  })
  return (kind: string, outcome: JobOutcome) => total.inc({ kind, outcome })
}

const loopPeriodMilliseconds = 50
const maxSamples = 1_000

/** Choice: a histogram, because the runtime's own measure has quantiles that each reader would reset for the others. */
function watchEventLoop(registry: Registry, clock: Clock): () => void {
  const delay = new Histogram({
    name: 'hostline_event_loop_delay_seconds',
    help: 'Delay of due work by the event loop.',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
    registers: [registry],
  })
  let last = performance.now()

  return clock.every(loopPeriodMilliseconds, () => {
    const now = performance.now()
    const late = Math.max(0, now - last - loopPeriodMilliseconds)
    last = now
    delay.observe(late / 1_000)
    // Add a sample for every tick missed: other work due in that time was delayed too.
    for (let n = 1; n < maxSamples && n * loopPeriodMilliseconds < late; n++) {
      delay.observe((late - n * loopPeriodMilliseconds) / 1_000)
    }
  })
}

/** The library's own collection has metrics without a meaning on this runtime, and names that `promtool` rejects. */
function readProcess(registry: Registry, version: string) {
  new Gauge({
    name: 'hostline_build_info',
    help: 'The running version.',
    labelNames: ['version'],
    registers: [registry],
  }).set({ version }, 1)
  addReadings(registry, {
    process_cpu_seconds_total: [
      'User and system CPU time.',
      () => {
        const { user, system } = process.cpuUsage()
        return (user + system) / 1_000_000
      },
    ],
    process_start_time_seconds: [
      'Start time of the process since the epoch.',
      () => performance.timeOrigin / 1_000,
    ],
    process_resident_memory_bytes: ['Resident memory.', () => process.memoryUsage.rss()],
  })
  if (process.platform !== 'linux') return
  // The limit does not change while the process runs.
  const limits = readFileSync('/proc/self/limits', 'utf8')
  const maxFiles = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Infinity)
  addReadings(registry, {
    process_open_fds: ['Open files, including sockets.', countOpenFiles],
    process_max_fds: ['Maximum number of open files.', () => maxFiles],
  })
}

// Since Linux 6.2 the size of the directory is the number of open files; older kernels need a listing.
function countOpenFiles() {
  const files = '/proc/self/fd'
  return statSync(files).size || readdirSync(files).length
}

type Readings = Record<string, readonly [help: string, read: () => number]>

/** Read at each scrape. A name in `_total` is a counter. */
function addReadings(registry: Registry, readings: Readings) {
  for (const [name, [help, read]] of Object.entries(readings)) {
    const Kind: typeof Counter | typeof Gauge = name.endsWith('_total') ? Counter : Gauge
    new Kind({
      name,
      help,
      registers: [registry],
      collect() {
        this.reset()
        this.inc(read())
      },
    })
  }
}
