import type { Client, CursorPage, Item, ListRoute } from '../../../client/src/client.ts'

const partSize = 30

/** Reads a list part by part, each after the cursor of the one before. Rows that arrive meanwhile do not disturb that. */
export const partsOf =
  <R extends ListRoute>(client: Client, route: R, params: Record<string, string> = {}) =>
  (cursor?: string, signal?: AbortSignal): Promise<CursorPage<Item<R>>> => {
    const options = { params, query: { limit: partSize, cursor }, signal }
    // `limit` asks for this form.
    return client.request(route, options as never) as Promise<unknown> as Promise<
      CursorPage<Item<R>>
    >
  }
