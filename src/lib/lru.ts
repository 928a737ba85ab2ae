import { LRUCache } from 'lru-cache'

/** Keeps the `max` values that were used last. It grows as it fills: with the library's `max` alone each cache takes its
 *  memory, and milliseconds, at the start. */
export function createLru<Value extends object | number>(max: number) {
  return new LRUCache<string, Value>({ maxSize: max, sizeCalculation: () => 1 })
}
