import { type LogPosition, parsePosition, positionName, type ReplicaLog } from './log.ts'
import type { ObjectStore } from './object-store.ts'

const deletedAtOnce = 8
const keyOf = (place: LogPosition) => `log/${positionName(place)}`

/** The log as objects of a bucket, one per entry. */
export function createBucketLog(store: ObjectStore): ReplicaLog {
  async function* listAfter(place: LogPosition | undefined) {
    for await (const page of store.list('log/', place && keyOf(place))) {
      yield page.flatMap(({ key }) => parsePosition(key.slice('log/'.length)) ?? [])
    }
  }

  return {
    append: (place, bytes) => store.create(keyOf(place), bytes),
    read: (place) => store.get(keyOf(place)),
    listAfter,
    async trim(before) {
      for await (const places of listAfter(undefined)) {
        const old = places.map(keyOf).filter((key) => key < keyOf(before))
        for (let n = 0; n < old.length; n += deletedAtOnce) {
          await Promise.all(old.slice(n, n + deletedAtOnce).map((key) => store.delete(key)))
        }
        if (old.length < places.length) return
      }
    },
  }
}
