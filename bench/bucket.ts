import { startObjectStore } from '../test/support/object-store.ts'
import { pin } from './measure.ts'

export type Stored = { key: string; bytes: number; at: number }
export type BucketReport = { stored: Stored[]; counts: Record<string, number> }
export type Bucket = Awaited<ReturnType<typeof startBucket>>

/** An object store in a process of its own, on the core of the load generator.
 *  @param latency of each request, in ms */
export async function startBucket(latency: number) {
  const child = Bun.spawn([...pin(1), 'bun', import.meta.path, String(latency)], {
    stderr: 'inherit',
  })
  const { value } = await child.stdout.getReader().read()
  const { url, control } = JSON.parse(new TextDecoder().decode(value))
  return {
    url: url as string,
    /** Bytes stored since the last call, and all requests so far. */
    report: async () => (await (await fetch(control)).json()) as BucketReport,
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
    },
  }
}

async function run() {
  const store = await startObjectStore()
  store.faults.latency = Number(process.argv[2])
  let stored: Stored[] = []
  store.faults.afterPut = (key) => {
    stored.push({ key, bytes: store.get(key)?.length ?? 0, at: Date.now() })
  }
  const control = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch() {
      const report: BucketReport = { stored, counts: store.counts }
      stored = []
      return Response.json(report)
    },
  })
  console.log(JSON.stringify({ url: store.url, control: control.url.href }))
}

if (import.meta.main) await run()
