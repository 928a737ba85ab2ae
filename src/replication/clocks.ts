/** Two clocks at one moment: one stands still while the machine sleeps, the other one may be set. */
export type Clocks = { wall: number; steady: number }

export const readClocks = (): Clocks => ({ wall: Date.now(), steady: performance.now() })

/** How long ago that was at most, in ms. */
export function silenceOf({ wall, steady }: Clocks): number {
  return Math.max(Date.now() - wall, performance.now() - steady)
}
