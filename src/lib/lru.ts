import { LRUCache } from 'lru-cache'

/** Keeps the `max` most recently used values. Bounded by `maxSize`, because the library's `max` allocates all memory at
 *  the start. */
export function createLru<Value extends object | number>(max: number) {
  return new LRUCache<string, Value>({ maxSize: max, sizeCalculation: () => 1 })
}
