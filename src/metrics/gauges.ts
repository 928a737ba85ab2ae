import { Counter, Gauge, type Registry } from 'prom-client'

/** Gauges by name that one reading gives together, whenever somebody asks. */
export function addGauges<Name extends string>(
  registry: Registry,
  help: Record<Name, string>,
  read: () => Record<Name, number>,
) {
  const gauges = Object.entries<string>(help).map(
    ([name, text]) => new Gauge({ name, help: text, registers: [registry] }),
  )
  const names = Object.keys(help) as Name[]
  const [first] = gauges
  if (!first) return
  // The library asks in the order of registration: the first is asked before any other is written down.
  Object.assign(first, {
    collect() {
      const values = read()
      for (const [index, name] of names.entries()) gauges[index]?.set(values[name])
    },
  })
}

/** A total that is kept elsewhere. */
export function addTotal(registry: Registry, name: string, help: string, read: () => number) {
  new Counter({
    name,
    help,
    registers: [registry],
    collect() {
      this.reset()
      this.inc(read())
    },
  })
}
