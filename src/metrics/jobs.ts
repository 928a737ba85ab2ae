import { Counter, type Registry } from 'prom-client'
import type { OutboxStats } from '../jobs/outbox.ts'
import type { JobOutcome } from '../jobs/runner.ts'
import { addGauges } from './gauges.ts'

/** Counts what became of jobs. */
export function countJobs(registry: Registry) {
  const total = new Counter({
    name: 'hostline_jobs_total',
    help: 'Runs of jobs by kind and outcome; again: a part of it, failed: tried again later.',
    labelNames: ['kind', 'outcome'],
    registers: [registry],
  })
  return (kind: string, outcome: JobOutcome) => total.inc({ kind, outcome })
}

/** Tells how the outbox stands. */
export function readOutbox(registry: Registry, stats: () => OutboxStats) {
  addGauges(
    registry,
    {
      hostline_outbox_waiting: 'Jobs that are due or will be; 10000 stands for that many or more.',
      hostline_outbox_dead: 'Jobs that were given up; 10000 stands for that many or more.',
      hostline_outbox_oldest_seconds: 'How long the longest due job has been due.',
    },
    () => {
      const { waiting, dead, oldestAge } = stats()
      return {
        hostline_outbox_waiting: waiting,
        hostline_outbox_dead: dead,
        hostline_outbox_oldest_seconds: oldestAge / 1_000,
      }
    },
  )
}
