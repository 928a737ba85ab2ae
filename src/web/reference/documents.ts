/** The subset of JSON Schema that the service's descriptions use. */
export type Schema = {
  $ref?: string
  title?: string
  description?: string
  type?: string
  format?: string
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
  items?: Schema
  anyOf?: Schema[]
  allOf?: Schema[]
  enum?: unknown[]
  const?: unknown
  default?: unknown
  examples?: unknown[]
  pattern?: string
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
}
export type Schemas = Record<string, Schema>

export type Parameter = {
  name: string
  in: 'path' | 'query' | 'header'
  required?: boolean
  description?: string
  schema: Schema
  example?: unknown
}
type ErrorBody = { error: { code: string } }
export type Content = Record<
  string,
  { schema?: Schema; example?: unknown; examples?: Record<string, { value: ErrorBody }> }
>
export type Header = { $ref?: string; description?: string; schema?: Schema }
export type ResponseObject = {
  $ref?: string
  description: string
  headers?: Record<string, Header>
  content?: Content
}
export type RateLimit = { name: string; requests: number; window_seconds: number; per: string }

export type Operation = {
  operationId: string
  tags: string[]
  summary: string
  description?: string
  parameters?: Parameter[]
  requestBody?: { required?: boolean; content: Content }
  responses: Record<string, ResponseObject>
  security?: Record<string, string[]>[]
  'x-roles'?: string[]
  'x-scope'?: string
  'x-rate-limit'?: RateLimit
  'x-confirmation'?: unknown
  /** The names of the examples of error responses that the operation may have; absent for webhooks. */
  'x-errors'?: string[]
  /** The reasons that it may have, by status. */
  'x-error-reasons'?: Record<string, string[]>
}

export type ApiDocument = {
  info: { title: string; version: string; description: string }
  servers: { url: string }[]
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, Operation>>
  webhooks: Record<string, { post: Operation }>
  components: {
    schemas: Schemas
    responses: Record<string, ResponseObject>
    headers: Record<string, Header>
  }
}

export type Frame = {
  name: string
  summary?: string
  payload: { schema: Schema }
  examples: { payload: unknown }[]
}
export type ChannelDocument = {
  servers: { main: { host: string; protocol: string } }
  channels: {
    chat: {
      address: string
      title: string
      description: string
      bindings: { ws: { query: Schema } }
    }
  }
  components: { messages: Record<string, Frame>; schemas: Schemas }
}

/** The OpenAPI and AsyncAPI documents, as far as the page shows them. */
export type Documents = { api: ApiDocument; channel: ChannelDocument }

/** A row of docs/reasons.md; `name` is the reason, or else the code. */
export type Reason = { id: string; status: string; name: string; cells: string[] }
