import { LRUCache } from 'lru-cache'

/** Keeps the `max` most recently used values. `maxSize` lets it grow as it fills; the library's `max` would allocate all
 *  memory at the start. */
export function createLru<Value extends object | number>(max: number) {
  return new LRUCache<string, Value>({ maxSize: max, sizeCalculation: () => 1 })
}
