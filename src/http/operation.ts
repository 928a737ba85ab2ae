import type { TSchema } from '@sinclair/typebox'
import type { ErrorKind } from '../lib/errors.ts'

export type OperationDoc = {
  tag: 'Accounts' | 'Chat' | 'Support' | 'Notifications' | 'Feed' | 'Administration' | 'Service'
  summary: string
  description?: string
  /** Schema of the success answer by status; null for an answer without a JSON body. */
  success: Record<number, TSchema | null>
  /** Failures beyond those that follow from the route itself (access, limit, body). */
  errors?: ErrorKind[]
  /** Query parameters, none of them required. */
  query?: Record<string, TSchema>
  /** Request headers that the route reads. */
  headers?: Record<string, TSchema>
  /** Headers of the success answer, with what they tell. */
  successHeaders?: Record<string, string>
}

/** The description of a route, in the form that the swagger plugin passes through; `openapi.ts` makes it complete.
 *  Answers are described, not checked at run time: a test holds them against the description. */
export function operation(doc: OperationDoc) {
  const { tag, summary, description, success, errors = [], successHeaders = {} } = doc
  const responses = Object.fromEntries(
    Object.entries(success).map(([status, schema]) => [
      status,
      {
        description: summary,
        headers: Object.fromEntries(
          Object.entries(successHeaders).map(([name, text]) => [
            name,
            { description: text, schema: { type: 'string' as const } },
          ]),
        ),
        ...(schema && { content: { 'application/json': { schema } } }),
      },
    ]),
  )
  const parameters = [...parametersIn('query', doc.query), ...parametersIn('header', doc.headers)]
  return {
    tags: [tag],
    summary,
    ...(description !== undefined && { description }),
    ...(parameters.length > 0 && { parameters }),
    responses,
    'x-errors': errors,
  }
}

function parametersIn(place: 'query' | 'header', schemas: Record<string, TSchema> = {}) {
  return Object.entries(schemas).map(([name, schema]) => ({
    in: place,
    name,
    required: false,
    schema,
  }))
}
