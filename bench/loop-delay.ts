/** Preload it into a server to print each second how late a 5 ms timer was at most, which is the longest stop of the
 *  event loop, and how much CPU time the loop has used since the previous tick, which is independent of other load
 *  on the machine. */

const period = 5
const cpuMilliseconds = () => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}
let last = performance.now()
let lastCpu = cpuMilliseconds()
let longest = 0
let turns: number[] = []
setInterval(() => {
  const [now, cpu] = [performance.now(), cpuMilliseconds()]
  longest = Math.max(longest, now - last - period)
  turns.push(cpu - lastCpu)
  last = now
  lastCpu = cpu
}, period).unref()
setInterval(() => {
  console.log(`longest delay: ${longest.toFixed(1)} ms`)
  console.log(`turns: ${turns.map((one) => one.toFixed(1)).join(' ')}`)
  longest = 0
  turns = []
}, 1_000).unref()
