import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import type { AuditRow, AuditTrail } from '../../db/audit-trail.ts'
import { operation } from '../../http/operation.ts'
import { envelope, ListOf, listQuery, listRange } from '../../http/pagination.ts'
import { routeBase } from '../../http/request-context.ts'
import { isoTime } from '../../lib/clock.ts'
import { listById } from '../../lib/list-range.ts'

const pageSize = 50
const nullableText = Type.Union([Type.String(), Type.Null()])
const Party = Type.Object({ type: nullableText, id: nullableText })

const AuditEntry = Type.Object(
  {
    id: Type.String(),
    at: Type.String({ format: 'date-time' }),
    action: Type.String(),
    actor: Party,
    target: Party,
    ip: nullableText,
    details: Type.Union([Type.Record(Type.String(), Type.String()), Type.Null()]),
  },
  { title: 'AuditEntry' },
)

/** What admins see of the platform as a whole. */
export function platformRoutes({ audit }: { audit: Pick<AuditTrail, 'list' | 'count'> }) {
  return new Elysia({ name: 'platform' }).use(routeBase).get(
    '/v1/admin/audit-log',
    ({ query }) => {
      const range = listRange(query, pageSize)
      return envelope(range, listById(range, audit.list, audit.count), auditEntryView)
    },
    {
      access: 'admin',
      limit: 'default',
      detail: operation({
        tag: 'Administration',
        query: listQuery(pageSize),
        summary: 'Who did what, newest first',
        success: { 200: ListOf(AuditEntry) },
      }),
    },
  )
}

function auditEntryView(row: AuditRow) {
  return {
    id: row.id,
    at: isoTime(row.at),
    action: row.action,
    actor: { type: row.actorType, id: row.actorId },
    target: { type: row.targetType, id: row.targetId },
    ip: row.ip,
    details: row.details === null ? null : JSON.parse(row.details),
  }
}
