import { LRUCache } from 'lru-cache'

/** Keeps the `max` most recently used values. Bounded by `maxSize`, because the library's `max` allocates all memory at
 *  the start.
 *  @param make for `memo`, which is slower than `get` */
export function createLru<Value extends object | number>(
  max: number,
  make?: (key: string) => Value,
) {
  const common = { maxSize: max, sizeCalculation: () => 1 }
  return new LRUCache<string, Value>(make ? { ...common, memoMethod: make } : common)
}
