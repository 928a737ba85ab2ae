import type { Core, Module } from '../../core.ts'
import { createCallStore } from './call-store.ts'
import { createCalls, type Notify } from './calls.ts'
import { feedRoutes } from './feed-routes.ts'
import { createFollowStore } from './follow-store.ts'
import { createFollows } from './follows.ts'
import { platformRoutes } from './routes.ts'
import { serviceKeyRoutes } from './service-key-routes.ts'
import { createServiceKeyStore } from './service-key-store.ts'
import { createServiceKeys } from './service-keys.ts'

export function createPlatform(core: Core, { notify }: { notify: Notify }) {
  const { orm } = core
  const options = { ...core, notify }
  const serviceKeys = createServiceKeys({ ...options, store: createServiceKeyStore(orm) })
  const follows = createFollows({ ...options, store: createFollowStore(orm) })
  const calls = createCalls({ ...options, store: createCallStore(orm) })
  return {
    routes: platformRoutes(core)
      .use(serviceKeyRoutes({ serviceKeys }))
      .use(feedRoutes({ follows, calls })),
    forget: follows.forget,
    onForeignCommit: serviceKeys.reload,
    findServiceKey: serviceKeys.find,
    loadServiceKey: (key: string) => serviceKeys.findFresh(key),
    areInCall: calls.areInCall,
    followers: { count: follows.countFollowers, listAfter: follows.listFollowers },
  } satisfies Module & Record<string, unknown>
}
