import { expect, test } from 'bun:test'
import { createKeyedSemaphore, createPacedQueue, createSemaphore } from '../src/lib/concurrency.ts'

function startWork() {
  const running: Array<() => void> = []
  return { running, work: () => new Promise<void>((resolve) => running.push(resolve)) }
}

test('runs up to the limit at once, and the rest in order', async () => {
  const semaphore = createSemaphore(2, { maxWaiting: 10, refused: () => new Error('full') })
  const { running, work } = startWork()
  const finished: number[] = []
  const all = [0, 1, 2, 3].map((n) => semaphore(work).then(() => finished.push(n)))
  for (const done of [1, 2, 3, 4]) {
    await new Promise(setImmediate)
    expect(running.length).toBe(Math.min(4, done + 1))
    running[done - 1]?.()
  }
  await Promise.all(all)
  expect(finished).toEqual([0, 1, 2, 3])
})

test('low-priority work waits for all other work, in a queue of its own', async () => {
  const semaphore = createSemaphore(1, { maxWaiting: 1, refused: () => new Error('full') })
  const { running, work } = startWork()
  const finished: string[] = []
  const all = (['low', 'low', 'high'] as const).map((urgency) =>
    semaphore(work, urgency).then(() => finished.push(urgency)),
  )
  expect(semaphore(work, 'low')).rejects.toThrow('full')
  for (const n of [0, 1, 2]) {
    running[n]?.()
    await new Promise(setImmediate)
  }
  await Promise.all(all)
  expect(finished).toEqual(['low', 'high', 'low'])
})

test('refuses work when the queue is full, and accepts it again later', async () => {
  const semaphore = createSemaphore(1, { maxWaiting: 1, refused: () => new Error('full') })
  const { running, work } = startWork()
  const first = semaphore(work)
  const second = semaphore(work)
  expect(semaphore(work)).rejects.toThrow('full')
  running[0]?.()
  await first
  await new Promise(setImmediate)
  running[1]?.()
  await second
  const third = semaphore(work)
  await new Promise(setImmediate)
  running[2]?.()
  await third
})

test('failed work frees its slot', async () => {
  const semaphore = createSemaphore(1, { maxWaiting: 1, refused: () => new Error('full') })
  expect(semaphore(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(await semaphore(async () => 'yes')).toBe('yes')
})

test('work waits only for work with the same key', async () => {
  const semaphore = createKeyedSemaphore(1)
  const { running, work } = startWork()
  const started = () => running.length
  const all = ['a', 'a', 'b'].map((key) => semaphore(key, work))
  expect(started()).toBe(2)
  running[0]?.()
  await all[0]
  await new Promise(setImmediate)
  expect(started()).toBe(3)
  for (const end of running) end()
  await Promise.all(all)
})

test('a paced queue rests after a task for as long as it took', async () => {
  const paced = createPacedQueue()
  const spin = (milliseconds: number) => async () => {
    const startedAt = performance.now()
    while (performance.now() - startedAt < milliseconds);
    return performance.now()
  }
  const start = async () => performance.now()
  const endedAt = await paced(spin(40))
  expect((await paced(start)) - endedAt).toBeGreaterThanOrEqual(39)
})
