const pauseMilliseconds = 3

/** Polls until `look` returns something other than `undefined`, `null` or `false`.
 *  @throws on timeout, naming `what` */
export async function waitFor<T>(
  look: () => T | Promise<T>,
  what: string | (() => string) = String(look),
  patienceMilliseconds = 60_000,
): Promise<NonNullable<T>> {
  const deadline = Date.now() + patienceMilliseconds
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== null && found !== false) return found
    if (Date.now() > deadline) {
      throw new Error(`waited in vain for ${typeof what === 'string' ? what : what()}`)
    }
    await Bun.sleep(pauseMilliseconds)
  }
}

/** Waits for a random time, before a kill at any moment. */
export const aWhile = (meanMilliseconds: number) =>
  waitFor(() => Math.random() < pauseMilliseconds / meanMilliseconds)

/** Waits for a timeout that no test clock can advance; a longer wait does no harm. */
export const waitOut = (milliseconds: number) => Bun.sleep(milliseconds)
