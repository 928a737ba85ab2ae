import { startService } from '../test/support/service.ts'
import { median } from './measure.ts'

/** What blocks, data and notices cost a message: sends of two pairs in turns, in one process. One pair has nothing of
 *  it, in the other each has blocked 50 people, and the conversation has data of 4 KB and 50 notices. Prints the medians of
 *  the CPU time for each message, and fails when they differ by more than 3 µs: bun bench/features.ts [turns] */
const turns = Number(process.argv[2] ?? 60)
const messagesPerTurn = 500
const goalMicroseconds = 3

await using service = await startService()
const { token } = await service.issueKey(['all'])
const [plain, full] = [await service.pair(), await service.pair()]
for (let n = 0; n < 50; n++) {
  const { id } = await service.register()
  for (const own of [full.a, full.b]) {
    await service.call('PUT', `/v1/users/blocks/${id}`, { token: own.token })
  }
  const notice = { conversation_id: full.conversationId, body: 'Moved', unread: true }
  await service.call('POST', '/v1/service/messages', { token, body: notice })
}
const data = { text: 'x'.repeat(4_000) }
const path = `/v1/service/conversations/${full.conversationId}`
await service.call('PATCH', path, { token, body: { data } })

const times = { plain: [] as number[], full: [] as number[] }
await send(plain)
await send(full)
for (let n = 0; n < turns; n++) {
  times.plain.push(await send(plain))
  times.full.push(await send(full))
}
const [without, within] = [median(times.plain), median(times.full)]
console.log(`CPU a message: ${without.toFixed(1)} µs without, ${within.toFixed(1)} µs with`)
const difference = median(times.full.map((time, n) => time - (times.plain[n] ?? 0)))
console.log(`median of the differences: ${difference.toFixed(1)} µs (goal ${goalMicroseconds})`)
process.exitCode = difference <= goalMicroseconds ? 0 : 1

/** @returns the CPU time for each message in µs */
async function send({ a, conversationId }: typeof plain): Promise<number> {
  const before = process.cpuUsage()
  const sent = Array.from({ length: messagesPerTurn }, () =>
    service.say(a, conversationId, 'a message of the usual length, as people write them'),
  )
  for (const { status } of await Promise.all(sent)) {
    if (status !== 201) throw new Error(`a message answered ${status}`)
  }
  const { user, system } = process.cpuUsage(before)
  return (user + system) / messagesPerTurn
}
