/** Preloaded into a server, it prints each second how late a timer of 5 ms came at most: the longest stop of the loop. */

const period = 5
let last = performance.now()
let longest = 0
setInterval(() => {
  const now = performance.now()
  longest = Math.max(longest, now - last - period)
  last = now
}, period).unref()
setInterval(() => {
  console.log(`longest delay: ${longest.toFixed(1)} ms`)
  longest = 0
}, 1_000).unref()
