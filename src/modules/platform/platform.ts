import type { AuditTrail } from '../../db/audit-trail.ts'
import type { Orm } from '../../db/client.ts'
import type { Write } from '../../db/writer.ts'
import type { Clock } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import { createCallStore } from './call-store.ts'
import { createCalls, type Notify } from './calls.ts'
import { createFollowStore } from './follow-store.ts'
import { createFollows } from './follows.ts'
import { createServiceKeyStore } from './service-key-store.ts'
import { createServiceKeys } from './service-keys.ts'

type PlatformOptions = {
  orm: Orm
  write: Write
  audit: AuditTrail
  newId: NewId
  clock: Clock
  notify: Notify
}

/** Builds the chapter on the rest of the platform: its keys, and what it tells us. */
export function openPlatform(options: PlatformOptions) {
  const { orm } = options
  return {
    serviceKeys: createServiceKeys({ ...options, store: createServiceKeyStore(orm) }),
    follows: createFollows({ ...options, store: createFollowStore(orm) }),
    calls: createCalls({ ...options, store: createCallStore(orm) }),
  }
}
