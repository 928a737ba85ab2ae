import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Series } from './load.ts'
import { judge, median, pin, runLoad, startPinned } from './measure.ts'

/** `bun run bench:webhooks`: the cost of webhooks for senders of messages. A steady load runs without and with a
 *  webhook in turns, each time on a new database; the endpoint shares the core of the load. */

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '8' },
    rounds: { type: 'string', default: '2' },
    'per-second': { type: 'string', default: '1000' },
    senders: { type: 'string', default: '32' },
  },
})
const noticedMilliseconds = 2_000
const environment = { WEBHOOK_PRIVATE: 'true' }
const endpointCode = `
  let count = 0
  const fetch = ({ method }) => (method === 'GET' ? Response.json(count) : (count++, new Response(null, { status: 204 })))
  console.log(Bun.serve({ port: 0, hostname: '127.0.0.1', fetch }).url.href)`

const cases = { without: [] as Series[], with: [] as Series[] }
console.log('| webhook | messages/s | p50 / p99 ms | CPU µs each | delivered |')
console.log('|---|---|---|---|---|')
for (let round = 0; round < Number(values.rounds); round++) {
  cases.without.push(await measure('without'))
  cases.with.push(await measure('with'))
}
const ratio = (of: (series: Series) => number) =>
  median(cases.with.map(of)) / median(cases.without.map(of))
process.exitCode = judge('with a webhook : without', [
  { what: 'messages/s', value: ratio(({ rate }) => rate), goal: ['≥', 0.9] },
  { what: 'p50', value: ratio(({ p50 }) => p50) },
  { what: 'p99', value: ratio(({ p99 }) => p99) },
  { what: 'CPU', value: ratio(({ cpu }) => cpu ?? Number.NaN) },
])

async function measure(which: keyof typeof cases): Promise<Series> {
  const dataDir = mkdtempSync(join(tmpdir(), 'hostline-webhooks-'))
  await using endpoint = await startEndpoint()
  try {
    await using server = await startPinned('hostline', { dataDir, environment })
    if (which === 'with') await addWebhook(dataDir, endpoint.url)
    const { sends } = await runLoad({
      target: 'hostline',
      base: server.base,
      serverPid: server.pid,
      seconds: Number(values.seconds),
      transport: 'socket',
      senders: Number(values.senders),
      ...(Number(values['per-second']) > 0 && { perSecond: Number(values['per-second']) }),
    })
    if (!sends) throw new Error('nothing was sent')
    const { rate, p50, p99, cpu } = sends
    const times = `${p50.toFixed(2)} / ${p99.toFixed(2)}`
    const cells = [which, rate.toFixed(), times, cpu?.toFixed(), await endpoint.count()]
    console.log(`| ${cells.join(' | ')} |`)
    return sends
  } finally {
    rmSync(dataDir, { recursive: true })
  }
}

async function startEndpoint() {
  const child = Bun.spawn([...pin(1), 'bun', '-e', endpointCode], { stderr: 'inherit' })
  const { value } = await child.stdout.getReader().read()
  const url = new TextDecoder().decode(value).trim()
  return {
    url,
    count: async () => (await fetch(url)).json(),
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
    },
  }
}

async function addWebhook(dataDir: string, url: string) {
  const main = join(import.meta.dir, '../src/main.ts')
  const command = ['bun', main, 'webhook', 'create', '--url', url, '--events', 'message.created']
  const { exitCode, stderr } = Bun.spawnSync(command, {
    env: { ...process.env, ...environment, DATA_DIR: dataDir },
  })
  if (exitCode !== 0) throw new Error(stderr.toString())
  await Bun.sleep(noticedMilliseconds)
}
