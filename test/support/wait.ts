const deadlineMilliseconds = 10_000
const pauseMilliseconds = 3

/** Polls until there is something: `undefined`, `null` and `false` mean "not yet".
 *  @throws when nothing has come within ten seconds, naming `what` */
export async function waitFor<T>(
  look: () => T | Promise<T>,
  what = String(look),
): Promise<NonNullable<T>> {
  const deadline = Date.now() + deadlineMilliseconds
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== null && found !== false) return found
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`)
    await Bun.sleep(pauseMilliseconds)
  }
}
