/** Two clocks at one moment: `steady` stops while the machine sleeps, `wall` can be set. */
export type Clocks = { wall: number; steady: number }

export const readClocks = (): Clocks => ({ wall: Date.now(), steady: performance.now() })

/** The longest time in ms that may have passed since then. */
export function silenceOf({ wall, steady }: Clocks): number {
  return Math.max(Date.now() - wall, performance.now() - steady)
}
