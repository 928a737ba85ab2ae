import { readdirSync, readFileSync, statSync } from 'node:fs'
import { Gauge, type Registry } from 'prom-client'
import { addGauges, addTotal } from './gauges.ts'

const openFiles = '/proc/self/fd'
const limits = '/proc/self/limits'

/** Tells of the process, under the names that Prometheus libraries share. The library's own collection also gives what
 *  means nothing on this runtime, and names that `promtool` finds fault with. */
export function readProcess(registry: Registry, version: string) {
  new Gauge({
    name: 'hostline_build_info',
    help: 'What runs.',
    labelNames: ['version'],
    registers: [registry],
  }).set({ version }, 1)
  addTotal(
    registry,
    'process_cpu_seconds_total',
    'User and system CPU time.',
    () => sum(process.cpuUsage()) / 1_000_000,
  )
  addGauges(
    registry,
    {
      process_start_time_seconds: 'When the process started, since the epoch.',
      process_resident_memory_bytes: 'Resident memory.',
    },
    () => ({
      process_start_time_seconds: performance.timeOrigin / 1_000,
      process_resident_memory_bytes: process.memoryUsage.rss(),
    }),
  )
  if (process.platform === 'linux') readOpenFiles(registry)
}

function readOpenFiles(registry: Registry) {
  // The limit does not change while the process runs: it is raised before, or not at all.
  const max = Number(/^Max open files\s+(\d+)/m.exec(readFileSync(limits, 'utf8'))?.[1] ?? Infinity)
  addGauges(
    registry,
    {
      process_open_fds: 'Open files, sockets included.',
      process_max_fds: 'How many files may be open.',
    },
    () => ({ process_open_fds: countOpenFiles(), process_max_fds: max }),
  )
}

// Kernels from 6.2 on tell the number as the size; before, it takes a walk through all of them.
function countOpenFiles() {
  return statSync(openFiles).size || readdirSync(openFiles).length
}

function sum({ user, system }: NodeJS.CpuUsage) {
  return user + system
}
