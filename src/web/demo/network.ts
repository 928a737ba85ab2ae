import { signal } from '@preact/signals'

export type Network = ReturnType<typeof createNetwork>

/** The network of one person, which the demo can cut as a tunnel cuts that of a phone. A real client has no such thing: it
 *  leaves `fetch` alone, and the network breaks by itself. */
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
