type Page = { number: number; bytes: Uint8Array }

/** The maximum size of unshipped pages in memory. */
const maxBytes = 64 * 1_048_576

/** Keeps the newest version of each changed page. */
export function createPageBuffer() {
  let pages = new Map<number, Buffer>()
  let bytes = 0

  return {
    put(number: number, from: Buffer): void {
      const known = pages.get(number)
      if (known) {
        from.copy(known)
        return
      }
      pages.set(number, Buffer.from(from))
      bytes += from.length
    },
    isEmpty: () => pages.size === 0,
    isFull: () => bytes > maxBytes,
    clear(): void {
      pages.clear()
      bytes = 0
    },
    /** Removes and returns all pages, in page order. */
    take(): Page[] {
      const taken = [...pages].map(([number, own]) => ({ number, bytes: own }))
      pages = new Map()
      bytes = 0
      return taken.sort((a, b) => a.number - b.number)
    },
  }
}
