import type {
  ClientFrames,
  CursorPagination,
  NewMessage,
  Operations,
  Pagination,
  ServerFrames,
} from './schema.ts'

/** The types of the protocol, derived from the service's API descriptions. */

export type * from './schema.ts'

/** Method and path of an operation: `GET /v1/users/me`. */
export type Route = keyof Operations
export type Answer<R extends Route> = Operations[R]['answer'] extends null
  ? undefined
  : Operations[R]['answer']
export type Input<R extends Route> = Omit<Operations[R], 'answer'>
export type Body<R extends Route> = Operations[R] extends { body?: infer B } ? B : never
export type Query<R extends Route> = Operations[R] extends { query?: infer Q } ? Q : never

export type ListRoute = {
  [R in Route]: Answer<R> extends { data: unknown[]; pagination: unknown } ? R : never
}[Route]
export type Item<R extends ListRoute> =
  Answer<R> extends { data: (infer T extends object)[] } ? T : never
/** The response of a list in each of its forms: by page, or by cursor if the query has `limit` or `cursor`. */
export type PageOf<R extends ListRoute> = Extract<Answer<R>, { success: true }>
export type CursorPageOf<R extends ListRoute> = Exclude<Answer<R>, { success: true }> &
  CursorPage<Item<R>>
/** The lists with a page form. */
export type PageRoute = { [R in ListRoute]: PageOf<R> extends never ? never : R }[ListRoute]
export type Page<T> = { success: true; data: T[]; pagination: Pagination }
export type CursorPage<T> = { data: T[]; pagination: CursorPagination }

/** A message without its idempotency key. */
export type Draft = Omit<NewMessage, 'client_id'>

export type AckFrame = ServerFrames['ack']
export type ErrorFrame = ServerFrames['error']
export type ServerFrame = ServerFrames[keyof ServerFrames]
export type ClientFrame = ClientFrames[keyof ClientFrames]
