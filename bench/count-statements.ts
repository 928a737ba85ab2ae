import { watchRuns } from '../test/support/statements.ts'

/** Preload it into a server to print how many SQL statements its main thread runs each second. */

let count = 0
watchRuns(() => count++)
setInterval(() => {
  console.log(`statements: ${count}`)
  count = 0
}, 1_000).unref()
