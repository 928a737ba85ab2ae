const pauseMilliseconds = 3

/** Polls until there is something: `undefined`, `null` and `false` mean "not yet".
 *  @throws when nothing has come in time, naming `what` */
export async function waitFor<T>(
  look: () => T | Promise<T>,
  what = String(look),
  patienceMilliseconds = 60_000,
): Promise<NonNullable<T>> {
  const deadline = Date.now() + patienceMilliseconds
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== null && found !== false) return found
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`)
    await Bun.sleep(pauseMilliseconds)
  }
}

/** Waits for a moment at random, for what must hold at any instant. */
export const aWhile = (meanMilliseconds: number) =>
  waitFor(() => Math.random() < pauseMilliseconds / meanMilliseconds)

/** Waits until a bound has passed that no clock of ours can be advanced over: longer does not hurt. */
export const waitOut = (milliseconds: number) => Bun.sleep(milliseconds)
