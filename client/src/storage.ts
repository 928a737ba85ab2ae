/** Where a client keeps its session and its unsent messages between page loads. */
export type Storage = {
  get(key: string): string | null | undefined
  set(key: string, value: string): void
  remove(key: string): void
}

/** A browser's `localStorage` or `sessionStorage`. */
export function webStorage(area: {
  getItem(key: string): string | null
  setItem(key: string, value: string): void
  removeItem(key: string): void
}): Storage {
  return {
    get: (key) => area.getItem(key),
    set: (key, value) => area.setItem(key, value),
    remove: (key) => area.removeItem(key),
  }
}

/** React Native's `AsyncStorage`, or another one that answers later: read once, then written behind, in order. */
export async function asyncStorage(area: {
  getAllKeys(): Promise<readonly string[]>
  getItem(key: string): Promise<string | null>
  setItem(key: string, value: string): Promise<void>
  removeItem(key: string): Promise<void>
}): Promise<Storage> {
  const values = new Map<string, string>()
  for (const key of await area.getAllKeys()) {
    const value = key.startsWith('hostline ') ? await area.getItem(key) : null
    if (value !== null) values.set(key, value)
  }
  let written = Promise.resolve()
  const writeNext = (write: () => Promise<void>) => {
    written = written.then(write).catch(() => {}) // as with a full storage: the work at hand goes on
  }
  return {
    get: (key) => values.get(key),
    set(key, value) {
      values.set(key, value)
      writeNext(() => area.setItem(key, value))
    },
    remove(key) {
      values.delete(key)
      writeNext(() => area.removeItem(key))
    },
  }
}

export function memoryStorage(): Storage {
  const values = new Map<string, string>()
  return {
    get: (key) => values.get(key),
    set: (key, value) => values.set(key, value),
    remove: (key) => values.delete(key),
  }
}

/** The part of a storage that belongs to one service: another one must not see tokens. */
export function scoped(storage: Storage, baseUrl: string): Storage {
  const own = (key: string) => `hostline ${baseUrl} ${key}`
  return {
    get: (key) => storage.get(own(key)),
    set: (key, value) => storage.set(own(key), value),
    remove: (key) => storage.remove(own(key)),
  }
}

/** @returns undefined when there is nothing, or nothing readable */
export function readJson(storage: Storage, key: string): unknown {
  try {
    return JSON.parse(storage.get(key) ?? 'null') ?? undefined
  } catch {
    return undefined
  }
}

/** Choice: a full or forbidden storage does not stop the work at hand; what it should have kept is lost with the page.
 *  @returns whether the value is kept; if not, the one before is */
export function writeJson(storage: Storage, key: string, value: unknown): boolean {
  try {
    storage.set(key, JSON.stringify(value))
    return true
  } catch {
    return false
  }
}

export function removeKey(storage: Storage, key: string): void {
  try {
    storage.remove(key)
  } catch {
    // A storage that forbids even this holds nothing of ours.
  }
}
