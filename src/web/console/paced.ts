const soonMilliseconds = 100

/** Runs something shortly after it is asked for: however often that is, once in so many milliseconds. */
export function paced(work: () => void, milliseconds: number) {
  let timer: ReturnType<typeof setTimeout> | undefined
  let last = Number.NEGATIVE_INFINITY
  return {
    ask() {
      if (timer !== undefined) return
      const wait = Math.max(soonMilliseconds, last + milliseconds - Date.now())
      timer = setTimeout(() => {
        timer = undefined
        last = Date.now()
        work()
      }, wait)
    },
    cancel() {
      clearTimeout(timer)
      timer = undefined
    },
  }
}
