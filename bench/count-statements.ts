import { watchRuns } from '../test/support/statements.ts'

/** Preloaded into a server, it prints how many SQL statements the server's main thread runs in each second. */

let count = 0
watchRuns(() => count++)
setInterval(() => {
  console.log(`statements: ${count}`)
  count = 0
}, 1_000).unref()
