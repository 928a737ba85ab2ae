import { Counter, Gauge, Registry } from 'prom-client'
import type { OutboxStats } from '../jobs/outbox.ts'

type Sources = {
  outbox: () => OutboxStats
  hub: () => { sockets: number; users: number; dropped: number }
}

export type Metrics = ReturnType<typeof createMetrics>

/** What the process tells a Prometheus server (decisions 10). Gauges are read when somebody asks. */
export function createMetrics({ outbox, hub }: Sources) {
  const registry = new Registry()
  const registers = [registry]

  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read())
      },
    })

  gauge('hostline_outbox_waiting', 'Jobs that are due or will be.', () => outbox().waiting)
  gauge('hostline_outbox_dead', 'Jobs that were given up.', () => outbox().dead)
  gauge(
    'hostline_outbox_oldest_seconds',
    'How long the oldest waiting job has been due.',
    () => outbox().oldestAge / 1_000,
  )
  gauge('hostline_sockets', 'Open sockets.', () => hub().sockets)
  gauge('hostline_socket_users', 'Users with an open socket.', () => hub().users)
  gauge('hostline_frames_dropped', 'Frames that a slow reader did not get.', () => hub().dropped)
  const commits = new Counter({ name: 'hostline_commits_total', help: 'Commits.', registers })
  const writes = new Counter({
    name: 'hostline_writes_total',
    help: 'Functions that were committed; several share a commit.',
    registers,
  })

  return {
    contentType: registry.contentType,
    /** Counts a commit of so many functions. */
    committed(size: number) {
      commits.inc()
      writes.inc(size)
    },
    text: () => registry.metrics(),
  }
}
