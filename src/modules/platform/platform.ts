import type { Core, Module } from '../../core.ts'
import { createCalls, type Notify } from './calls.ts'
import { createFollows } from './follows.ts'
import { callView, followView } from './model.ts'
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
    routes: platformRoutes({ serviceKeys, follows, calls }),
    exportOf: (userId: string) => ({
      follows: store.eachFollowed(userId).map(followView),
      followers: store.eachFollower(userId).map(followView),
      calls: store.eachCall(userId).map((row) => row && callView(row)),
    }),
    forget: store.deleteFollowsBy,
    *erase(userId: string) {
      while (store.hasFollowers(userId)) yield () => store.deleteSomeFollowers(userId)
      yield () => store.deleteAudience(userId)
    },
    onForeignCommit: serviceKeys.reload,
    findServiceKey: serviceKeys.find,
    loadServiceKey: serviceKeys.load,
    areInCall: calls.areInCall,
    followers: { count: store.countFollowers, listAfter: store.listFollowers },
  } satisfies Module & Record<string, unknown>
}
