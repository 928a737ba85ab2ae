import { LRUCache } from 'lru-cache'
import type { Clock } from '../../lib/clock.ts'
import { TokenBucket } from '../../lib/token-bucket.ts'

const rule = { burst: 5, millisecondsPerToken: 2_000 }
const remembered = 10_000

/** Whether a typing frame of a user in a conversation is passed on; those too many are dropped (decisions 6). */
export function createTypingThrottle(clock: Clock) {
  const buckets = new LRUCache<string, TokenBucket>({ max: remembered })

  return (userId: string, conversationId: string): boolean => {
    const key = `${userId}:${conversationId}`
    const now = clock.now()
    const bucket = buckets.get(key) ?? new TokenBucket(rule, now)
    buckets.set(key, bucket)
    return bucket.take(now)
  }
}
