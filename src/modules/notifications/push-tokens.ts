import type { Core } from '../../core.ts'
import { AppError, invalidField } from '../../lib/errors.ts'
import { sha256 } from '../../lib/hash.ts'
import { getById } from '../../lib/ids.ts'
import { type PushPlatform, serviceOf, targetOf } from '../../outside/push/pusher.ts'
import type { NotificationParts } from './notifications.ts'
import { heldOf, type PushTokenRow } from './push-token-store.ts'

type Device = { userId: string; sessionId: string; token: string; platform: PushPlatform }

export type PushTokens = ReturnType<typeof createPushTokens>

const maxPerUser = 25

export function createPushTokens(core: Core, parts: NotificationParts) {
  const { config, write, newId, clock, outbox } = core
  const { pushTokenStore: store, isAllowedEndpoint } = parts

  function mustBePushable({ token, platform }: Device) {
    const target = targetOf(token, platform)
    const isSubscription = platform === 'web' && token.trimStart().startsWith('{')
    if (isSubscription && target.kind !== 'web_push') throw invalidField('token', 'subscription')
    if (target.kind === 'web_push' && !isAllowedEndpoint(target.subscription.endpoint)) {
      throw invalidField('token', 'push_endpoint')
    }
  }

  /** A new token of a session belongs to the same device, so it takes over what waits for the end of quiet hours. */
  function takeHeld({ id, userId, sessionId, service }: PushTokenRow) {
    const before = store.listAll(userId).filter((row) => row.sessionId === sessionId)
    const held = before.flatMap(heldOf)
    if (held.length === 0) return
    for (const row of before) store.update(row.id, { heldPush: null })
    const jobId = newId()
    store.update(id, { heldPush: held.map((push) => ({ ...push, job_id: jobId })) })
    const job = { user_id: userId, push_token_id: id }
    outbox.add('held_push', job, { id: jobId, receiver: service })
  }

  function upsert(device: Device): PushTokenRow {
    const { userId, sessionId, token, platform } = device
    // It may have ended since the request began.
    if (!store.isSessionLive(sessionId)) throw new AppError('session_ended')
    const service = serviceOf(targetOf(token, platform), config.webPushHosts)
    const tokenHash = sha256(token)
    const now = clock.now()
    const known = store.findByHash(tokenHash)
    if (known?.userId === userId) {
      const changes = { sessionId, platform, service, registeredAt: now }
      store.update(known.id, changes)
      return { ...known, ...changes }
    }
    store.deleteEnded(userId)
    // The device now belongs to another user, so pushes for the earlier one must stop.
    if (known) store.delete(known.id)
    const times = { createdAt: now, registeredAt: now }
    const row = { ...device, ...times, id: newId(), tokenHash, service, heldPush: null }
    store.insert(row)
    takeHeld(row)
    store.deleteLeastRecent(userId, maxPerUser)
    return row
  }

  return {
    /** Registers a device. Idempotent. A device of another user moves to this one.
     *  @throws validation_error (`token`: not an endpoint of a push service) · session_ended */
    async register(device: Device): Promise<PushTokenRow> {
      mustBePushable(device)
      return write(() => upsert(device))
    },

    list: store.listLive,

    /** @throws not_found (unknown or of another user) */
    remove: (userId: string, idText: string): Promise<void> =>
      write(() => void store.delete(getById(idText, (id) => store.findLive(userId, id)).id)),
  }
}
