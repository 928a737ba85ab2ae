import type { AnyElysia } from 'elysia'
import Memoirist from 'memoirist'
import type { ServiceScope } from '../lib/vocabulary.ts'
import type { Access, RouteLimit } from './exchange.ts'
import type { RoutePolicy } from './pipeline.ts'

/** A route and the options that each one must name. */
export type DescribedRoute = RoutePolicy & { method: string }

type Hooks = { access?: Access; limit?: RouteLimit; scope?: ServiceScope }

/** Every route of an application with its policy.
 *  @throws Error for a route that does not say who may call it and which limit it counts against */
export function describedRoutes(app: AnyElysia): DescribedRoute[] {
  return app.routes.map(({ method, path, hooks }) => {
    const { access, limit, scope } = hooks as Hooks
    if (!access || !limit) throw new Error(`${method} ${path} names no access or no limit`)
    if (access === 'service' && !scope) throw new Error(`${method} ${path} names no scope`)
    return { method, path, access, limit, scope }
  })
}

/** Finds the policy of a request before the framework routes it; HEAD counts as GET. */
export function createRouteFinder(routes: readonly DescribedRoute[]) {
  const router = new Memoirist<RoutePolicy>()
  for (const { method, ...policy } of routes) router.add(method, policy.path, policy)
  return (method: string, path: string): RoutePolicy | undefined =>
    router.find(method === 'HEAD' ? 'GET' : method, path)?.store
}
