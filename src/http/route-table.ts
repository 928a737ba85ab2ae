import { OptionalKind, type TSchema, Type } from '@sinclair/typebox'
import type { AnyElysia } from 'elysia'
import { createGuard, fieldProblems } from '../api/fields.ts'
import { type FieldProblem, problem, throwProblems } from '../lib/errors.ts'
import { lazy } from '../lib/lazy.ts'
import type { ServiceScope } from '../lib/vocabulary.ts'
import type { Confirmation } from './confirmation.ts'
import type { Access, RouteLimit } from './request-context.ts'

export type RoutePolicy = {
  path: string
  access: Access
  limit: RouteLimit
  scope: ServiceScope | undefined
  confirm: Confirmation | undefined
  /** The largest file, for a route that reads its body itself as a stream. */
  maxFileBytes: number | undefined
  status: number
  guardQuery: (url: string) => void
  guardBody: ((value: unknown) => void) | undefined
}

export type DescribedRoute = RoutePolicy & { method: string; needsBody: boolean }

type Parameter = { in: 'query' | 'header'; name: string; required: boolean; schema: TSchema }

type Hooks = Partial<
  Pick<RoutePolicy, 'access' | 'limit' | 'scope' | 'confirm' | 'maxFileBytes'>
> & {
  body?: TSchema
  detail?: {
    responses?: object
    parameters?: Parameter[]
  }
}

/** @throws Error for a route without `access`, `limit` or the scope of a service route */
export function describedRoutes(app: AnyElysia): DescribedRoute[] {
  return app.routes.map(({ method, path, hooks }) => {
    const { access, limit, scope, confirm, maxFileBytes, body, detail } = hooks as Hooks
    if (!access || !limit) throw new Error(`${method} ${path} has no access or no limit`)
    if (access === 'service' && !scope) throw new Error(`${method} ${path} has no scope`)
    const [status = 200] = Object.keys(detail?.responses ?? {}).map(Number)
    const queried = detail?.parameters?.filter((parameter) => parameter.in === 'query') ?? []
    const guardQuery = createQueryGuard(queried)
    const needsBody = body !== undefined && !(OptionalKind in body)
    const guardBody = body && bodyGuard(body, needsBody)
    const guards = { guardQuery, guardBody, needsBody }
    return { method, path, access, limit, scope, confirm, maxFileBytes, status, ...guards }
  })
}

/** An optional body may be missing as a whole. */
function bodyGuard(schema: TSchema, needsBody: boolean) {
  const guard = createGuard(schema)
  return (value: unknown) => {
    if (needsBody || value !== undefined) guard(value)
  }
}

/** Also refuses each repeated parameter, known or not. */
function createQueryGuard(parameters: readonly Parameter[]) {
  const schemas = Object.fromEntries(parameters.map(({ name, schema }) => [name, schema]))
  const needsQuery = parameters.some(({ required }) => required)
  const guardOf = lazy(() => {
    const fields = parameters.map(({ name, required, schema }) => [
      name,
      required ? schema : Type.Optional(schema),
    ])
    const schema = Type.Object(Object.fromEntries(fields))
    return { schema, guard: createGuard(schema) }
  })
  return (url: string): void => {
    const start = url.indexOf('?')
    if (start < 0 && !needsQuery) return
    const { query, repeated } = readQuery(start < 0 ? '' : url.slice(start), schemas)
    const { schema, guard } = guardOf()
    if (repeated.size === 0) guard(query)
    else throwProblems({ ...fieldProblems(schema, query), ...Object.fromEntries(repeated) })
  }
}

function readQuery(text: string, schemas: Record<string, TSchema>) {
  const values = new Map<string, unknown>()
  const repeated = new Map<string, FieldProblem>()
  for (const [name, value] of new URLSearchParams(text)) {
    if (values.has(name)) repeated.set(name, problem('repeated'))
    values.set(name, parameterValue(value, schemas[name]))
  }
  return { query: Object.fromEntries(values), repeated }
}

/** A text that cannot be converted stays, and fails validation. */
function parameterValue(text: string, schema: TSchema | undefined): unknown {
  if (schema?.['type'] === 'integer') return /^-?\d+$/.test(text) ? Number(text) : text
  if (schema?.['type'] === 'boolean') return text === 'true' || (text === 'false' ? false : text)
  return text
}

/** Finds it before the framework does, with the framework's own router; HEAD counts as GET. */
export function createRouteFinder(app: AnyElysia) {
  const { router } = app
  const policies = describedRoutes(app)
  // A pattern matches itself as a path, so the router finds the entry of a route by its own pattern.
  const byEntry = new Map(policies.map((it) => [router.http.find(it.method, it.path)?.store, it]))
  byEntry.delete(undefined)

  return (method: string, path: string): RoutePolicy | undefined => {
    const name = method === 'HEAD' ? 'GET' : method
    const fixed = router.static[path]?.[name]
    if (fixed !== undefined) return policies[fixed]
    return byEntry.get(router.http.find(name, path)?.store)
  }
}
