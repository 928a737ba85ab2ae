// Runs after the tests and names programs whose absence has skipped tests.
import { tools } from '../test/support/tools.ts'

const missing = Object.entries(tools).filter(([, path]) => !path)
const names = missing.map(([name]) => name).join(', ')
if (names !== '') console.log(`Tests were skipped because this machine lacks ${names}.`)
