import { afterAll } from 'bun:test'

/** A fixture for a table of cases that do not affect each other: started for the first case and stopped after the
 *  last test around the call. */
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
