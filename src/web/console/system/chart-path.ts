/** Null where there is no data. */
export type Values = (number | null)[]
export type Shape = 'bars' | 'line'

/** Height of a chart in path units; each value is one unit wide. */
export const height = 24

/** @param top the value at the upper edge */
export function pathOf(values: Values, top: number, shape: Shape): string {
  const levels = values.map((value) => value && height - (value / top) * (height - 1))
  if (shape === 'bars')
    return levels.map((level, x) => (level ? `M${x + 0.5} ${height}V${level}` : '')).join('')
  const start = (x: number) => (levels[x - 1] == null ? 'M' : 'L')
  // A single point is drawn as a line of length zero.
  return levels.map((y, x) => (y == null ? '' : `${start(x)}${x + 0.5} ${y}h0`)).join('')
}
