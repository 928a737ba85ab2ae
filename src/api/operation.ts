import type { TSchema } from '@sinclair/typebox'
import type { Confirmation } from '../http/confirmation.ts'
import { ListOf, listQuery } from '../http/pagination.ts'
import type { Access, RouteLimit } from '../http/request-context.ts'
import type { ErrorKind } from '../lib/errors.ts'
import type { ServiceScope } from '../lib/vocabulary.ts'

const statusTexts: Record<number, string> = {
  101: 'Switching Protocols',
  200: 'OK',
  201: 'Created',
  202: 'Accepted',
  204: 'No Content',
  206: 'Partial Content',
  304: 'Not Modified',
}

export const tags = {
  Accounts: 'Registration, login, sessions, e-mail addresses, passwords, and your own profile.',
  Chat: 'Conversations between two people, their messages, and broadcasts of hosts to their followers.',
  Files: 'Files in messages, tickets and profiles.',
  Moderation: 'Blocks, reports, and how the desk handles reports.',
  Support: 'Tickets for their owners, and the desk where admins answer them.',
  Notifications: 'Notifications, preferences, and devices for pushes.',
  Feed: 'Reports of the rest of the platform to this service, with a service key.',
  Administration:
    'People, service keys, webhooks, announcements, jobs and the audit log, for admins.',
  Service: 'Health, metrics and the API descriptions.',
} as const
type Tag = keyof typeof tags

type Preset = { access: Access; limit?: RouteLimit; scope?: ServiceScope; confirm?: Confirmation }

export type Operation = { id: string; tag: Tag; text: string } & Described

type Described = {
  /** The schema of the success response by status; null for an empty body, or one of `media`. */
  [status: number]: TSchema | null
} & More

type More = {
  /** Failures beyond those that follow from the route itself (access, limit, body). */
  errors?: ErrorKind[]
  query?: Record<string, TSchema>
  required?: readonly string[]
  headers?: Record<string, TSchema>
  successHeaders?: Record<string, { description: string; schema: { type: 'string' } }>
  /** Fields of the response example that differ from the example of its schema. */
  example?: object
  /** The body of a success response that is no JSON. */
  media?: Record<string, { schema: object }>
  maxFileBytes?: number
}

/** The id is the method name in generated clients, the first sentence of the text the summary. The pipeline sets the
 *  status. Responses are not validated at run time: a test compares them with the description. */
export function operations(tag: Tag, { access, limit = 'default', scope, confirm }: Preset) {
  const operation = <Body extends TSchema = never>(
    id: string,
    text: string,
    { body, ...described }: Described & { body?: Body },
  ) => ({
    access,
    limit,
    ...(scope !== undefined && { scope }),
    ...(confirm && { confirm }),
    ...(described.maxFileBytes !== undefined && { maxFileBytes: described.maxFileBytes }),
    // The pipeline reads the body.
    parse: 'none' as const,
    operation: { id, tag, text, ...described },
    // Without a body the router must see no such option.
    ...((body && { body }) as [Body] extends [never] ? object : { body: Body }),
  })
  return Object.assign(operation, {
    list: (
      id: string,
      text: string,
      item: TSchema,
      { query, size, ...more }: More & { size?: number } = {},
    ) =>
      operation(id, text, { 200: ListOf(item), ...more, query: { ...listQuery(size), ...query } }),
  })
}

/** For pages and their files, which are not part of the API description. */
export const hidden = {
  access: 'public' as const,
  limit: 'none' as const,
  parse: 'none' as const,
  detail: { hide: true },
}

export const forCommands = (status = 200) => ({
  access: 'operator' as const,
  limit: 'none' as const,
  parse: 'none' as const,
  detail: { hide: true },
  operation: { [status]: null },
})

/** The form that the swagger plugin passes through; `openapi.ts` completes it. */
export function detailOf({ id, tag, text, ...described }: Operation) {
  const { errors = [], query, required, headers, successHeaders = {}, ...others } = described
  const { example, media, maxFileBytes, ...success } = others
  const responses = Object.fromEntries(
    Object.entries(success).map(([status, schema]) => [
      status,
      {
        description: statusTexts[Number(status)] ?? status,
        headers: successHeaders,
        ...(schema && { content: { 'application/json': { schema } } }),
        ...(media && status.startsWith('2') && { content: media }),
      },
    ]),
  )
  const parameters = [...parametersIn('query', query, required), ...parametersIn('header', headers)]
  const [summary = '', ...rest] = text.split(/(?<=\.) /)
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(rest.length > 0 && { description: rest.join(' ') }),
    ...(parameters.length > 0 && { parameters }),
    ...(maxFileBytes !== undefined && { requestBody: fileBody }),
    responses,
    'x-errors': errors,
    'x-example': example,
  }
}

const bytes = { type: 'string', format: 'binary', description: 'The file.' } as const
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

function parametersIn(
  place: 'query' | 'header',
  schemas: Record<string, TSchema> = {},
  required: readonly string[] = [],
) {
  return Object.entries(schemas).map(([name, schema]) => ({
    in: place,
    name,
    required: required.includes(name),
    schema,
    ...(schema['examples'] && { example: schema['examples'][0] }),
  }))
}
