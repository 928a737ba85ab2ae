import { expect, test } from 'bun:test'
import { RetryLater } from '../src/lib/errors.ts'
import { createBulkhead } from '../src/modules/notifications/jobs.ts'
import { PushRefused } from '../src/push/pusher.ts'

/** A bulkhead whose pushes run until they are told how they end. */
function createPlaces() {
  const bulkhead = createBulkhead()

  /** Starts 40 pushes. */
  return async (service: string) => {
    const running: PromiseWithResolvers<'delivered'>[] = []
    const pushes = Array.from({ length: 40 }, () =>
      bulkhead(service, () => {
        const push = Promise.withResolvers<'delivered'>()
        running.push(push)
        return push.promise
      }).catch((error: Error) => error),
    )
    const turnedAway = await Promise.all(pushes.slice(running.length))
    return {
      running: running.length,
      turnedAway: [...new Set(turnedAway.map((outcome) => JSON.stringify(outcome)))],
      async end(error?: Error) {
        for (const push of running) error ? push.reject(error) : push.resolve('delivered')
        await Promise.all(pushes)
      },
    }
  }
}

const busy = ['{"againAfterMilliseconds":500}']

test('a push service gets most places, and leaves some to others', async () => {
  const fill = createPlaces()
  expect(await fill('fcm')).toMatchObject({ running: 24, turnedAway: busy })
  expect(await fill('mozilla')).toMatchObject({ running: 24, turnedAway: busy })
})

test('one that fails gets two until it is well again', async () => {
  const fill = createPlaces()
  await (await fill('fcm')).end(new RetryLater('down', 0))
  const slow = await fill('fcm')
  expect(slow).toMatchObject({ running: 2, turnedAway: ['{"againAfterMilliseconds":5000}'] })
  await slow.end()
  expect(await fill('fcm')).toMatchObject({ running: 24, turnedAway: busy })
})

test('one that refuses a message is well', async () => {
  const fill = createPlaces()
  await (await fill('fcm')).end(new PushRefused('too long'))
  expect((await fill('fcm')).running).toBe(24)
})
