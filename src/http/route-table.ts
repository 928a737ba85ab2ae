import type { AnyElysia } from 'elysia'
import Memoirist from 'memoirist'
import type { Access, RouteLimit } from './exchange.ts'
import type { RoutePolicy } from './pipeline.ts'

/** A route and the two options that each one must name. */
export type DescribedRoute = RoutePolicy & { method: string; path: string }

type Hooks = { access?: Access; limit?: RouteLimit }

/** Every route of an application with its policy.
 *  @throws Error for a route that does not say who may call it and which limit it counts against */
export function describedRoutes(app: AnyElysia): DescribedRoute[] {
  return app.routes.map(({ method, path, hooks }) => {
    const { access, limit } = hooks as Hooks
    if (!access || !limit) throw new Error(`${method} ${path} names no access or no limit`)
    return { method, path, access, limit }
  })
}

/** Finds the policy of a request before the framework routes it; HEAD counts as GET. */
export function createRouteFinder(routes: readonly DescribedRoute[]) {
  const router = new Memoirist<RoutePolicy>()
  for (const { method, path, access, limit } of routes) router.add(method, path, { access, limit })
  return (method: string, path: string): RoutePolicy | undefined =>
    router.find(method === 'HEAD' ? 'GET' : method, path)?.store
}
