import { signal } from '@preact/signals'

export type Network = ReturnType<typeof createNetwork>

/** Simulates a lost connection for one person. A real app has no such thing and leaves `fetch` alone. */
export function createNetwork() {
  const isCut = signal(false)
  return {
    isCut,
    fetch: (url: string, init: object) =>
      isCut.value
        ? Promise.reject(new TypeError('the demo has cut the network'))
        : fetch(url, init),
  }
}
