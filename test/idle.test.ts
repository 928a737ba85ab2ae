import { expect, test } from 'bun:test'
import { createTestClock } from './support/clock.ts'
import { startService } from './support/service.ts'
import { watchRuns } from './support/statements.ts'

test('an idle service runs at most two statements a second', async () => {
  const clock = createTestClock()
  // Only the test clock advances, so writes at start must not wait for the real disk.
  await using service = await startService({ listen: true, clock, sync: async () => {} })
  let runs = 0
  watchRuns(() => runs++)
  const pass = async (seconds: number) => {
    for (let n = 0; n < seconds * 10; n++) {
      clock.advance(100)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  await pass(5)
  runs = 0
  await pass(10)
  expect(runs).toBeLessThanOrEqual(20)
  runs = 0
  await service.register()
  expect(runs).toBeGreaterThan(0)
})
