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

type Hooks = Partial<
  Pick<RoutePolicy, 'access' | 'limit' | 'scope' | 'confirm' | 'maxFileBytes'>
> & {
  body?: TSchema
  /** Its keys that are numbers are statuses. */
  operation?: { query?: Record<string, TSchema>; required?: readonly string[] }
}

/** @throws Error for a route without `access`, `limit` or the scope of a service route */
export function describedRoutes(app: AnyElysia): DescribedRoute[] {
  return app.routes.map(({ method, path, hooks }) => {
    const { access, limit, scope, confirm, maxFileBytes, body, operation = {} } = hooks as Hooks
    if (!access || !limit) throw new Error(`${method} ${path} has no access or no limit`)
    if (access === 'service' && !scope) throw new Error(`${method} ${path} has no scope`)
    const status = Object.keys(operation).map(Number).find(Number.isInteger) ?? 200
    const guardQuery = createQueryGuard(operation.query, operation.required)
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
function createQueryGuard(schemas: Record<string, TSchema> = {}, required: readonly string[] = []) {
  const guardOf = lazy(() => {
    const fields = Object.entries(schemas).map(([name, schema]) => [
      name,
      required.includes(name) ? schema : Type.Optional(schema),
    ])
    const schema = Type.Object(Object.fromEntries(fields))
    return { schema, guard: createGuard(schema) }
  })
  return (url: string): void => {
    const start = url.indexOf('?')
    if (start < 0 && required.length === 0) return
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
