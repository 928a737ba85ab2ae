import { afterAll } from 'bun:test'

/** For a table of cases that leave nothing behind which another would see: what they need is started for the first of them
 *  and stopped after the last test around the call. */
export function shared<T extends AsyncDisposable>(start: () => Promise<T>): () => Promise<T> {
  let started: Promise<T> | undefined
  afterAll(async () => {
    await (await started)?.[Symbol.asyncDispose]()
    started = undefined
  })
  return () => {
    started ??= start()
    return started
  }
}
