const size = 12_000
/** One word in nine is long. */
const longEvery = 9
const ending = 'ational'
const syllables = [
  'b',
  'ch',
  'd',
  'f',
  'g',
  'h',
  'k',
  'l',
  'm',
  'n',
  'p',
  'r',
  's',
  'st',
  't',
  'v',
].flatMap((onset) => ['a', 'e', 'i', 'o', 'u'].map((vowel) => onset + vowel))

/** Word frequencies follow Zipf's law: the n-th word is n times rarer than the first. With about 135 words in a
 *  ticket, the 10th occurs in three of four tickets, the 80th in every seventh. */
const words = Array.from({ length: size }, (_, n) => {
  const word = wordOf(n + syllables.length)
  return n % longEvery === 3 ? word + ending : word
})
const harmonic = words.reduce((sum, _, n) => sum + 1 / (n + 1), 0)
/** Each word as often as it is used, so that a random pick follows the distribution. */
const bag = words.flatMap((word, n) =>
  Array.from({ length: Math.ceil((100_000 / harmonic) * (1 / (n + 1))) }, () => word),
)

/** The n-th most frequent word, from 1. */
export const wordAt = (n: number) => words[n - 1] ?? ''

/** A text of `count` words. */
export function textOf(count: number, pick: (below: number) => number): string {
  return Array.from({ length: count }, () => bag[pick(bag.length)]).join(' ')
}

// The first syllable varies fastest, so that words of similar frequency begin differently.
function wordOf(n: number): string {
  const rest = Math.floor(n / syllables.length)
  return (syllables[n % syllables.length] ?? '') + (rest > 0 ? wordOf(rest) : '')
}
