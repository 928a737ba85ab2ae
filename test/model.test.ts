import { expect, test } from 'bun:test'
import { type Model, mustHold, playSeeds } from './support/model.ts'

/** A shelf for three things that accepts a fourth, which the model forbids. */
function shelf() {
  const things: string[] = []
  return { things, async [Symbol.asyncDispose]() {} }
}
type Shelf = ReturnType<typeof shelf>

const model: Model<Shelf> = {
  begin: async () => shelf(),
  actions: {
    async put({ things }, random) {
      things.push(random.pick(['cup', 'jug']))
      return `a ${things.at(-1)} is put`
    },
    take: async ({ things }) => (things.length > 0 ? `a ${things.pop()} is taken` : undefined),
    look: async () => 'somebody looks',
  },
  check: async ({ things }) => mustHold('at most three', things.length <= 3, things.length),
  conclude: async ({ things }) => mustHold('no four jugs', !things.every((it) => it === 'jug'), ''),
}

test('a model reports the shortest history that breaks a rule, and the same one each time', async () => {
  const stories = [1, 1].map(() => playSeeds(model, [1], 40).catch(({ message }) => message))
  const [story, again] = await Promise.all(stories)
  expect(story).toMatch(
    /^seed 1 breaks a rule in 4 steps\n(\d\. a (cup|jug) is put\n){4}Error: at most three: 4$/,
  )
  expect(again).toBe(story)
})

test('a history without a violation reports nothing', async () => {
  const silent = { ...model, check: async () => {}, conclude: async () => {} }
  await playSeeds(silent, [1, 2, 3], 40)
})
