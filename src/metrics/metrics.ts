import { Registry } from 'prom-client'
import type { OutboxStats } from '../jobs/outbox.ts'
import type { Clock } from '../lib/clock.ts'
import { countChannel, type HubStats, readHub } from './channel.ts'
import { watchEventLoop } from './event-loop.ts'
import { countJobs, readOutbox } from './jobs.ts'
import { readProcess } from './process.ts'
import { countRequests } from './requests.ts'
import { countCommits, readStorage, type StorageStats } from './storage.ts'

type Sources = { outbox: () => OutboxStats; hub: () => HubStats; storage: () => StorageStats }

export type Metrics = ReturnType<typeof createMetrics>

/** What the process tells a Prometheus server (decisions 10). Events are counted by the functions given out here, so
 *  that nobody else knows the library; how things stand is read when somebody asks. */
export function createMetrics(version: string, clock: Clock) {
  const registry = new Registry()
  readProcess(registry, version)

  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    requests: countRequests(registry),
    channel: countChannel(registry),
    commits: countCommits(registry),
    jobs: countJobs(registry),
    /** Where to read how things stand. */
    read({ outbox, hub, storage }: Sources) {
      readHub(registry, hub)
      readOutbox(registry, outbox)
      readStorage(registry, storage)
    },
    stop: watchEventLoop(registry, clock),
  }
}
