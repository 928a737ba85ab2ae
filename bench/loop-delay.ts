/** Preloaded into a server, it prints each second how late a timer of 5 ms came at most, which is the longest stop of the
 *  loop; and for each time how much CPU the loop has used since the one before. The latter is the program's own doing,
 *  however busy the machine is. */

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
