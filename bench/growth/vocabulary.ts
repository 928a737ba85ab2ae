const size = 12_000
/** One word in so many is long. */
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

/** Words as in a language: the n-th most frequent one is n times as rare as the first. With the 135 words or so of a
 *  ticket, the 10th is in three of four tickets, the 80th in every seventh. */
const words = Array.from({ length: size }, (_, n) => {
  const word = wordOf(n + syllables.length)
  return n % longEvery === 3 ? word + ending : word
})
const harmonic = words.reduce((sum, _, n) => sum + 1 / (n + 1), 0)
/** Every word as often as it is used: a pick at random is a word of a text. */
const bag = words.flatMap((word, n) =>
  Array.from({ length: Math.ceil((100_000 / harmonic) * (1 / (n + 1))) }, () => word),
)

/** The n-th most frequent word, from 1. */
export const wordAt = (n: number) => words[n - 1] ?? ''

/** A text of so many words. */
export function textOf(count: number, pick: (below: number) => number): string {
  return Array.from({ length: count }, () => bag[pick(bag.length)]).join(' ')
}

// The first syllable turns fastest: words that are about as frequent begin differently.
function wordOf(n: number): string {
  const rest = Math.floor(n / syllables.length)
  return (syllables[n % syllables.length] ?? '') + (rest > 0 ? wordOf(rest) : '')
}
