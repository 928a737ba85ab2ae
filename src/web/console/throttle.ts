const soonMilliseconds = 100

/** Throttles `work`: it runs shortly after the first call, at most once per interval. */
export function throttle(work: () => void, milliseconds: number) {
  let timer: ReturnType<typeof setTimeout> | undefined
  let last = Number.NEGATIVE_INFINITY
  return {
    schedule() {
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
