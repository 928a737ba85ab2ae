/** Keeps the session and unsent messages between page loads. */
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

/** An adapter for React Native's `AsyncStorage` and other asynchronous storages: reads everything once, then writes in
 *  the background, in order. */
export async function asyncStorage(area: {
  getAllKeys(): Promise<readonly string[]>
  getItem(key: string): Promise<string | null>
  setItem(key: string, value: string): Promise<void>
  removeItem(key: string): Promise<void>
}): Promise<Storage> {
  const values = new Map<string, string>()
  for (const key of await area.getAllKeys()) {
    // A `storageKey` stands before.
    const value = /(^| )hostline /.test(key) ? await area.getItem(key) : null
    if (value !== null) values.set(key, value)
  }
  let written = Promise.resolve()
  const writeNext = (write: () => Promise<void>) => {
    written = written.then(write).catch(() => {}) // ignored, like a full storage
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

/** The part of a storage whose keys begin with `prefix`. */
export function scoped(storage: Storage, prefix: string): Storage {
  const own = (key: string) => `${prefix} ${key}`
  return {
    get: (key) => storage.get(own(key)),
    set: (key, value) => storage.set(own(key), value),
    remove: (key) => storage.remove(own(key)),
  }
}

/** @returns undefined when the value is missing or unreadable */
export function readJson(storage: Storage, key: string): unknown {
  try {
    return JSON.parse(storage.get(key) ?? 'null') ?? undefined
  } catch {
    return undefined
  }
}

/** Choice: a full or forbidden storage does not stop the client; the value is then lost with the page.
 *  @returns whether the value was stored; if not, the old one remains */
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
    // A storage that forbids even this holds none of our values.
  }
}
