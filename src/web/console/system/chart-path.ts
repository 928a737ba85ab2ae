/** Null where nothing is known. */
export type Values = (number | null)[]
export type Shape = 'bars' | 'line'

/** Of a chart, in the units of its path; each value is one wide. */
export const height = 24

/** @param top the value at the upper edge */
export function pathOf(values: Values, top: number, shape: Shape): string {
  const levels = values.map((value) => value && height - (value / top) * (height - 1))
  if (shape === 'bars')
    return levels.map((level, x) => (level ? `M${x + 0.5} ${height}V${level}` : '')).join('')
  const start = (x: number) => (levels[x - 1] == null ? 'M' : 'L')
  // A point by itself is a line of no length.
  return levels.map((y, x) => (y == null ? '' : `${start(x)}${x + 0.5} ${y}h0`)).join('')
}
