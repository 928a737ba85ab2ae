import { createHash } from 'node:crypto'
import type { Write } from '../../db/writer.ts'
import type { Clock } from '../../lib/clock.ts'
import { AppError, invalidField } from '../../lib/errors.ts'
import { type NewId, parseId } from '../../lib/ids.ts'
import { type Listing, type ListRange, listById } from '../../lib/list-range.ts'
import { type PushPlatform, targetOf } from '../../push/pusher.ts'
import type { PushTokenRow, PushTokenStore } from './push-token-store.ts'

type PushTokensOptions = {
  store: PushTokenStore
  write: Write
  newId: NewId
  clock: Clock
  /** Whether messages may be posted to a browser's endpoint. */
  isAllowedEndpoint: (endpoint: string) => boolean
}

export type Device = { userId: string; sessionId: string; token: string; platform: PushPlatform }

export type PushTokens = ReturnType<typeof createPushTokens>

const tokensPerUser = 25

/** The devices that a user can be reached on (spec 4.5, decisions 8). */
export function createPushTokens(options: PushTokensOptions) {
  const { store, write, newId, clock, isAllowedEndpoint } = options

  /** @throws validation_error (`token`): an endpoint that is none, or not of a push service */
  function check({ token, platform }: Device) {
    const target = targetOf(token, platform)
    const isSubscription = platform === 'web' && token.trimStart().startsWith('{')
    if (isSubscription && target.kind !== 'web_push') throw invalidField('token', 'subscription')
    if (target.kind === 'web_push' && !isAllowedEndpoint(target.subscription.endpoint)) {
      throw invalidField('token', 'push_endpoint')
    }
  }

  function upsert(device: Device): PushTokenRow {
    const { userId, sessionId, token, platform } = device
    const tokenHash = createHash('sha256').update(token).digest('hex')
    const now = clock.now()
    const known = store.findByHash(tokenHash)
    if (known?.userId === userId) {
      const changes = { sessionId, platform, registeredAt: now }
      store.updateRegistration(known.id, changes)
      return { ...known, ...changes }
    }
    store.deleteEnded(userId)
    // The device has changed hands: the earlier user must not be told of it any more.
    if (known) store.delete(known.id)
    const row = { ...device, id: newId(), tokenHash, createdAt: now, registeredAt: now }
    store.insert(row)
    const oldest = store.count(userId) > tokensPerUser ? store.findLeastRecent(userId) : undefined
    if (oldest) store.delete(oldest.id)
    return row
  }

  return {
    /** Registers a device, again or anew; one that belonged to somebody else moves to this user.
     *  @throws validation_error (`token`) */
    async register(device: Device): Promise<PushTokenRow> {
      check(device)
      return write(() => upsert(device))
    },

    list: (userId: string, range: ListRange): Listing<PushTokenRow> =>
      listById(
        range,
        (rows) => store.list(userId, rows),
        () => store.countLive(userId),
      ),

    /** @throws not_found (unknown, or somebody else's) */
    async remove(userId: string, idText: string): Promise<void> {
      const id = parseId(idText) ?? ''
      await write(() => {
        if (!store.findLive(userId, id)) throw new AppError('not_found')
        store.delete(id)
      })
    },

    /** The push service says that the device cannot be reached by it any more. */
    drop: (id: string) => write(() => store.delete(id)),
    find: store.findLive,
    listIds: store.listLiveIds,
    forget: store.deleteOfUser,
  }
}
