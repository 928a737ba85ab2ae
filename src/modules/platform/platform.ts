import type { Core, Module } from '../../core.ts'
import { createCalls, type Notify } from './calls.ts'
import { createFollows } from './follows.ts'
import { platformRoutes } from './routes.ts'
import { createServiceKeys } from './service-keys.ts'
import { createFeedStore } from './store.ts'

/** What the rest of the platform reports and calls us with, and what admins see of it. */
export function createPlatform(core: Core, { notify }: { notify: Notify }) {
  const store = createFeedStore(core.orm)
  const serviceKeys = createServiceKeys(core)
  const follows = createFollows(core, { store, notify })
  const calls = createCalls(core, { store, notify })

  return {
    routes: platformRoutes({ audit: core.audit, serviceKeys, follows, calls }),
    forget: store.deleteFollowsBy,
    onForeignCommit: serviceKeys.reload,
    findServiceKey: serviceKeys.find,
    loadServiceKey: serviceKeys.load,
    areInCall: calls.areInCall,
    followers: { count: store.countFollowers, listAfter: store.listFollowers },
  } satisfies Module & Record<string, unknown>
}
