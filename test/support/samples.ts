import type { createRandom } from './random.ts'

// biome-ignore lint/suspicious/noExplicitAny: a JSON document, or a value made from it
type Json = any
type Random = ReturnType<typeof createRandom>

/** Values that are unexpected for any field. */
const oddities: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  0.5,
  1e308,
  2 ** 53,
  '',
  ' \t\n',
  '\u0000',
  'a\u0007\u001b[31m',
  '\ud800',
  '\u202egnp.exe',
  'שלום',
  '👩‍👩‍👧‍👦'.repeat(500),
  'x'.repeat(6_000),
  'x'.repeat(70_000),
  '1e9',
  '0x10',
  "' OR 1=1 --",
  '%00%zz',
  '../../etc/passwd',
  '9'.repeat(400),
  [],
  [[[[[]]]]],
  {},
  { $ref: '#' },
  JSON.parse('{"__proto__":{"role":"admin"},"constructor":{"prototype":1},"toString":1}'),
  JSON.parse(`${'['.repeat(2_000)}${']'.repeat(2_000)}`),
  Array.from({ length: 2_000 }, (_, n) => n),
]

/** Generates values for the schemas of a description, valid and invalid ones.
 *  @param known values that exist on the server, by field name */
export function createSampler(random: Random, document: Json, known: Record<string, string>) {
  const { below, pick } = random
  const resolve = (reference: string): Json =>
    reference
      .slice(2)
      .split('/')
      .reduce((at, key) => at[key], document)

  function text({ minLength = 0, maxLength = 40, format }: Json, name: string): string {
    const value = known[name]
    if (value !== undefined && below(4) > 0) return value
    if (format === 'email') return `p${below(1e6)}@example.com`
    if (format === 'uri') return `https://x.example/${below(1e6)}`
    const length = minLength + below(Math.min(maxLength - minLength, 40) + 1)
    return Array.from({ length }, () => pick([...'abc xyzäß😀-/%'])).join('')
  }

  const makers: Record<string, (schema: Json, name: string) => Json> = {
    string: text,
    object: fields,
    integer: ({ minimum = 0 }) => minimum + below(100),
    boolean: () => below(2) === 0,
    array: ({ minItems = 0, items }, name) =>
      Array.from({ length: minItems + below(3) }, () => sample(items, name)),
  }

  function fields({ properties = {}, required = [] }: Json): Json {
    const chosen = Object.entries(properties).filter(
      ([name]) => required.includes(name) || below(2) === 0,
    )
    return Object.fromEntries(chosen.map(([name, schema]) => [name, sample(schema, name)]))
  }

  /** A value that matches a schema. */
  function sample(schema: Json, name = ''): Json {
    if (schema.$ref) return sample(resolve(schema.$ref), name)
    if (schema.anyOf) return sample(pick(schema.anyOf), name)
    if (schema.const !== undefined) return schema.const
    if (schema.enum) return pick(schema.enum)
    return makers[schema.type]?.(schema, name) ?? null
  }

  /** The value with an odd, missing or additional part. */
  function spoil(value: Json): Json {
    const isObject = typeof value === 'object' && value !== null
    if (!isObject || below(8) === 0) return pick(oddities)
    if (Array.isArray(value)) return [...value, pick(oddities)]
    const name = pick([...Object.keys(value), `extra ${below(9)}`])
    const { [name]: old, ...others } = value
    return below(4) === 0 ? others : { ...others, [name]: spoil(old) }
  }

  /** Broken JSON, or none at all. */
  function garble(json: string): string | Uint8Array<ArrayBuffer> {
    return pick([
      '',
      json.slice(0, -1),
      `${json},`,
      `\ufeff${json}`,
      json.replaceAll('"', "'"),
      '{"body":1e999,"body":NaN}',
      '['.repeat(50_000),
      new Uint8Array([123, 34, 255, 254, 34, 58, 49, 125]),
    ])
  }

  return { sample, spoil, garble, oddity: () => pick(oddities) }
}
