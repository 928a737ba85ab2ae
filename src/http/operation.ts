import { STATUS_CODES } from 'node:http'
import type { TSchema } from '@sinclair/typebox'
import type { ErrorKind } from '../lib/errors.ts'
import type { ServiceScope } from '../lib/vocabulary.ts'
import type { Confirmation } from './confirmation.ts'
import type { Access, RouteLimit } from './request-context.ts'

/** The tags of the API description, in their order. */
export const tags = {
  Accounts: 'Registering, logging in and out, sessions, addresses, passwords, and the own profile.',
  Chat: 'Conversations of two people, their messages, and broadcasts of hosts to their followers.',
  Files: 'Files that messages and tickets show.',
  Moderation: 'Blocking and reporting, and what the desk does about it.',
  Support: 'Tickets as their owners see them, and the desk at which admins answer them.',
  Notifications:
    'What happened while somebody was away, their devices, and what they want to hear of.',
  Feed: 'What the rest of the platform tells this service, with a service key.',
  Administration:
    'People, service keys, webhooks, announcements, jobs and the audit log, for admins.',
  Service: 'Health, metrics and the descriptions of this interface.',
} as const
type Tag = keyof typeof tags

/** What the routes of one audience share. */
type Preset = {
  access: Access
  limit?: RouteLimit
  scope?: ServiceScope
  confirm?: Confirmation
}

type More = {
  /** Failures beyond those that follow from the route itself (access, limit, body). */
  errors?: ErrorKind[]
  /** Query parameters, none of them required. */
  query?: Record<string, TSchema>
  /** Request headers that the route reads. */
  headers?: Record<string, TSchema>
  /** Headers of the success answer, with what they tell. */
  successHeaders?: Record<string, string>
  /** What the example of the answer says otherwise than its schema. */
  example?: object
  /** The largest file, for a route that takes one as its body and reads it itself. */
  maxFileBytes?: number
}

/** Makes the options of routes that share an audience. Each route then names its id, which generated clients call it by,
 *  what it does (the first sentence is the summary), the schema of its success answer by status (null for none; the
 *  pipeline sets the status), and what is its own. Answers are described, not checked at run time: a test holds them against the description. */
export function operations(tag: Tag, { access, limit = 'default', scope, confirm }: Preset) {
  return (id: string, text: string, success: Record<number, TSchema | null>, more: More = {}) => ({
    access,
    limit,
    ...(scope !== undefined && { scope }),
    ...(confirm && { confirm }),
    ...(more.maxFileBytes !== undefined && { maxFileBytes: more.maxFileBytes }),
    // The pipeline has read the body.
    parse: 'none' as const,
    detail: { operationId: id, tags: [tag], ...detailOf(text, success, more) },
  })
}

/** The options of a route that browsers load and programs do not call: the description leaves it out. */
export const hidden = {
  access: 'public' as const,
  limit: 'none' as const,
  parse: 'none' as const,
  detail: { hide: true },
}

/** The options of a route for commands on this machine: the description leaves it out. */
export const forCommands = (status = 200) => ({
  access: 'operator' as const,
  limit: 'none' as const,
  parse: 'none' as const,
  detail: { hide: true, responses: { [status]: { description: STATUS_CODES[status] ?? '' } } },
})

// The form that the swagger plugin passes through; `openapi.ts` makes it complete.
function detailOf(
  text: string,
  success: Record<number, TSchema | null>,
  { errors = [], query, headers, successHeaders = {}, example, maxFileBytes }: More,
) {
  const responses = Object.fromEntries(
    Object.entries(success).map(([status, schema]) => [
      status,
      {
        description: STATUS_CODES[status] ?? status,
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
  const parameters = [...parametersIn('query', query), ...parametersIn('header', headers)]
  const [summary = '', ...rest] = text.split(/(?<=\.) /)
  return {
    summary,
    ...(rest.length > 0 && { description: rest.join(' ') }),
    ...(parameters.length > 0 && { parameters }),
    ...(maxFileBytes !== undefined && { requestBody: fileBody }),
    responses,
    'x-errors': errors,
    'x-example': example,
  }
}

const bytes = { type: 'string', format: 'binary' } as const
const fileBody = {
  required: true,
  content: {
    'multipart/form-data': {
      schema: { type: 'object' as const, properties: { file: bytes }, required: ['file'] },
    },
    // Bytes of any type have no schema in OpenAPI 3.1.
    '*/*': {},
  },
}

function parametersIn(place: 'query' | 'header', schemas: Record<string, TSchema> = {}) {
  return Object.entries(schemas).map(([name, schema]) => ({
    in: place,
    name,
    required: false,
    schema,
    ...(schema['examples'] && { example: schema['examples'][0] }),
  }))
}
