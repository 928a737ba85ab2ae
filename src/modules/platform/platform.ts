import type { Core, MayTalk, Module, ResolveUser } from '../../core.ts'
import type { Notify } from '../../lib/events.ts'
import { createCalls, type NotifyAbout } from './calls.ts'
import { createFollows } from './follows.ts'
import { Call, callView, Follow, followView } from './model.ts'
import { platformRoutes } from './routes.ts'
import { createServiceKeys } from './service-keys.ts'
import { createFeedStore, platformRetention } from './store.ts'

declare module '../../db/audit-trail.ts' {
  interface AuditActions {
    service_key_created: 'service_key'
    service_key_revoked: 'service_key'
  }
}

type Neighbours = {
  notify: Notify
  resolveUser: ResolveUser
  /** Called inside the `write` that changes the state of a call. */
  onCallChanged: (hostId: string, guestId: string) => void
  blocks: {
    mayTalk: MayTalk
    listBlockedEitherWay: (userId: string) => readonly string[]
  }
}

export function createPlatform(core: Core, neighbours: Neighbours) {
  const { notify, resolveUser, blocks, onCallChanged } = neighbours
  const store = createFeedStore(core.orm)
  const notifyAbout: NotifyAbout = (userId, otherId, event) => {
    if (blocks.mayTalk(userId, otherId)) notify(userId, event)
  }
  const serviceKeys = createServiceKeys(core)
  function findPresent(reference: string): string | undefined {
    const id = resolveUser(reference)
    return id !== undefined && store.isPresent(id) ? id : undefined
  }
  const parts = { store, resolveUser, findPresent, notify: notifyAbout }
  const follows = createFollows(core, parts)
  const calls = createCalls(core, { ...parts, onChanged: onCallChanged })

  const externalIdOf = (userId: string) => store.findUser(userId)?.externalId ?? undefined
  // External ids of others are no part of a person's export.
  const none = () => undefined
  const [viewFollow, viewCall] = [followView(none), callView(none)]

  return {
    retention: platformRetention,
    routes: (app) => platformRoutes(app, { serviceKeys, follows, calls, externalIdOf }),
    exports: {
      follows: {
        description: 'The hosts that the person follows.',
        item: Follow,
        each: (userId) => store.eachFollowed(userId).map(viewFollow),
      },
      followers: {
        description: 'The followers of the person.',
        item: Follow,
        each: (userId) => store.eachFollower(userId).map(viewFollow),
      },
      calls: {
        description: 'Calls of the person, as host or guest.',
        item: Call,
        each: (userId) => store.eachCall(userId).map((row) => row && viewCall(calls.current(row))),
      },
    },
    erase(userId: string, limit: number) {
      const last = store.deleteFollowsBy(userId, limit) ?? store.deleteFollowers(userId, limit)
      if (last === undefined) store.deleteAudience(userId)
      return last
    },
    findServiceKey: serviceKeys.find,
    areInCall: calls.areInCall,
    hasStoppedRinging: calls.hasStoppedRinging,
    followers: {
      count: (hostId: string) => store.countFollowers(hostId, blocks.listBlockedEitherWay(hostId)),
      listAfter: store.listFollowers,
    },
  } satisfies Module & Record<string, unknown>
}
