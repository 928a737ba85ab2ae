import { sql } from 'drizzle-orm'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { ActorType } from '../lib/vocabulary.ts'
import type { Orm } from './client.ts'
import { auditLog } from './schema.ts'

export type AuditAction =
  | 'refresh_token_reused'
  | 'user_created'
  | 'role_changed'
  | 'email_verified'
  | 'user_disabled'

export type AuditEntry = {
  action: AuditAction
  actor: { type: ActorType; id?: string }
  target?: { type: 'user' | 'session'; id: string }
  ip?: string
  /** Never a secret: no token, no password, no hash of one. */
  details?: Record<string, string>
}

export type AuditTrail = { record(entry: AuditEntry): void }

/** Writes rows of the audit log, inside the transaction of what they tell about. */
export function createAuditTrail(orm: Orm, newId: NewId, clock: Clock): AuditTrail {
  const insert = orm
    .insert(auditLog)
    .values({
      id: sql.placeholder('id'),
      at: sql.placeholder('at'),
      action: sql.placeholder('action'),
      actorType: sql.placeholder('actorType'),
      actorId: sql.placeholder('actorId'),
      targetType: sql.placeholder('targetType'),
      targetId: sql.placeholder('targetId'),
      ip: sql.placeholder('ip'),
      details: sql.placeholder('details'),
    })
    .prepare()

  return {
    record({ action, actor, target, ip, details }) {
      insert.run({
        id: newId(),
        at: clock.now(),
        action,
        actorType: actor.type,
        actorId: actor.id ?? null,
        targetType: target?.type ?? null,
        targetId: target?.id ?? null,
        ip: ip ?? null,
        details: details ? JSON.stringify(details) : null,
      })
    },
  }
}
