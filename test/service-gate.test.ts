import { expect, test } from 'bun:test'
import { createServiceGate } from '../src/modules/notifications/service-gate.ts'

type Gate = ReturnType<typeof createServiceGate>

/** Lets in whoever gets in. */
function fill(gate: Gate, service: string) {
  const inside = []
  for (let n = 0; n < 40; n++) {
    const entry = gate.enter(service)
    if ('leave' in entry) inside.push(entry)
  }
  return inside
}

test('a push service gets most places, and leaves some to others', () => {
  const gate = createServiceGate()
  expect(fill(gate, 'fcm')).toHaveLength(24)
  expect(gate.enter('fcm')).toEqual({ againAfterMilliseconds: 500 })
  expect(fill(gate, 'mozilla')).toHaveLength(24)
})

test('one that fails gets two until it is well again', () => {
  const gate = createServiceGate()
  for (const entry of fill(gate, 'fcm')) entry.leave(false)
  const [first, ...others] = fill(gate, 'fcm')
  expect(others).toHaveLength(1)
  expect(gate.enter('fcm')).toEqual({ againAfterMilliseconds: 5_000 })
  first?.leave(true)
  expect(fill(gate, 'fcm')).toHaveLength(23)
})
