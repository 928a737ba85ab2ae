import { Database } from 'bun:sqlite'

/** Preloaded into a server, it prints how many SQL statements the server's main thread runs in each second. */

let count = 0
// Prepared statements of every kind end in the same native object; only `run` on the database goes another way.
const { native } = new Database(':memory:').prepare('SELECT 1')
countCalls(Object.getPrototypeOf(native), ['all', 'get', 'iterate', 'raw', 'run', 'values'])
countCalls(Database.prototype, ['exec', 'run'])
setInterval(() => {
  console.log(`statements: ${count}`)
  count = 0
}, 1_000).unref()

function countCalls(owner: object, names: string[]) {
  for (const name of names) {
    const original = Reflect.get(owner, name)
    Reflect.set(owner, name, function (this: unknown, ...args: unknown[]) {
      count++
      return Reflect.apply(original, this, args)
    })
  }
}
