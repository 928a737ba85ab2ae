import { createRandom } from './random.ts'

export type Random = ReturnType<typeof createRandom>

/** A step as data: the name of an action, and the seed of its choices. A history stays playable when steps are left
 *  out. */
export type Step = { action: string; seed: number }

/** A service under test beside a model of it. */
export type Model<World extends AsyncDisposable> = {
  /** A world without history. */
  begin: () => Promise<World>
  /** Each action changes the world and returns a short description; undefined when it is not possible now. */
  actions: Record<string, (world: World, random: Random) => Promise<string | undefined>>
  /** Relative frequency of an action; 1 by default. */
  weights?: Record<string, number>
  /** Each history prefers some actions and omits others, so that histories differ more. */
  hasFavourites?: boolean
  /** Compares the service with the model after every step.
   *  @throws Broken */
  check: (world: World) => Promise<void>
  /** Runs once at the end of a history, and may leave the world unusable. */
  conclude: (world: World) => Promise<void>
}

/** A violated rule. */
export class Broken extends Error {
  readonly rule: string

  constructor(rule: string, detail: unknown) {
    super(`${rule}: ${typeof detail === 'string' ? detail : JSON.stringify(detail)}`)
    this.rule = rule
  }
}

/** @throws Broken */
export function mustHold(rule: string, holds: boolean, detail: unknown): void {
  if (!holds) throw new Broken(rule, detail)
}

type Played = { steps: Step[]; descriptions: string[]; broken?: Error }

/** Steps that are not possible cost little, so many are drawn for each that counts. */
const drawnPerStep = 20

/** Plays a history of `length` steps for each seed.
 *  @throws with the shortest history that breaks the same rule as the first failing seed */
export async function playSeeds<World extends AsyncDisposable>(
  model: Model<World>,
  seeds: Iterable<number>,
  length: number,
): Promise<void> {
  for (const seed of seeds) {
    const random = createRandom(seed)
    const names = namesOf(model, random)
    const draw = () => ({ action: random.pick(names), seed: random.below(2 ** 31) })
    const drawn = Array.from({ length: length * drawnPerStep }, draw)
    const played = await play(model, drawn, length)
    if (!played.broken) continue
    const { descriptions, broken } = await shorten(model, played)
    const history = descriptions.map((line, index) => `${index + 1}. ${line}`).join('\n')
    throw new Error(
      `seed ${seed} breaks a rule in ${descriptions.length} steps\n${history}\n${broken}`,
    )
  }
}

/** Names of actions, repeated by frequency. */
function namesOf<World extends AsyncDisposable>(model: Model<World>, random: Random): string[] {
  const all = Object.keys(model.actions)
  const drawn = all.flatMap((name) => {
    const liking = model.hasFavourites ? random.pick([0, 1, 1, 3]) : 1
    return Array.from({ length: liking * (model.weights?.[name] ?? 1) }, () => name)
  })
  return drawn.length > 0 ? drawn : all
}

/** @param length maximum number of steps that count */
async function play<World extends AsyncDisposable>(
  model: Model<World>,
  steps: Step[],
  length = steps.length,
): Promise<Played> {
  const played: Played = { steps: [], descriptions: [] }
  await using world = await model.begin()
  try {
    for (const step of steps) {
      if (played.steps.length === length) break
      const { action, seed } = step
      const at = played.steps.push(step) - 1
      played.descriptions[at] = action
      const description = await model.actions[action]?.(world, createRandom(seed))
      if (description === undefined) {
        played.steps.pop()
        played.descriptions.pop()
        continue
      }
      played.descriptions[at] = description
      await model.check(world)
    }
    await model.conclude(world)
  } catch (error) {
    played.broken = error instanceof Error ? error : new Error(String(error))
  }
  return played
}

/** Leaves steps out, many at once and then single ones, as long as the same rule is violated. */
async function shorten<World extends AsyncDisposable>(
  model: Model<World>,
  failed: Played,
): Promise<Played> {
  let shortest = failed
  for (let size = failed.steps.length; size >= 1; ) {
    let isShorter = false
    for (let at = 0; at < shortest.steps.length; ) {
      const tried = await play(model, shortest.steps.toSpliced(at, size))
      if (ruleOf(tried) === ruleOf(failed)) {
        shortest = tried
        isShorter = true
      } else at += size
    }
    if (!isShorter || size > 1) size = Math.floor(size / 2)
  }
  return shortest
}

const ruleOf = ({ broken }: Played) => (broken instanceof Broken ? broken.rule : broken?.message)
