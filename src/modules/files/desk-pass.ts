import { createHmac, randomBytes } from 'node:crypto'
import { type Clock, hour } from '../../lib/clock.ts'
import { isSameSecret } from '../../lib/hash.ts'

const parameter = 'desk'

export type DeskPass = ReturnType<typeof createDeskPass>

/** Signs the URL of a removed file for readers of a report, for an hour. The key exists only in memory. */
export function createDeskPass(clock: Clock) {
  const key = randomBytes(32)
  const sign = (id: string, until: number) =>
    `${until}.${createHmac('sha256', key).update(`${id} ${until}`).digest('base64url')}`

  return {
    add(url: string, id: string): string {
      const signed = new URL(url)
      signed.searchParams.set(parameter, sign(id, clock.now() + hour))
      return signed.href
    },
    isValid(id: string, address: string): boolean {
      const text = new URL(address).searchParams.get(parameter)
      const until = Number.parseInt(text ?? '', 10)
      if (text === null || !(clock.now() < until)) return false
      return isSameSecret(text, sign(id, until))
    },
  }
}
