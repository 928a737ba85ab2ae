import { and, asc, eq, gt, gte, inArray, isNull, ne, sql } from 'drizzle-orm'
import type { Orm } from '../../db/open.ts'
import { users, webhookDeliveries, webhooks } from '../../db/schema.ts'
import { countRows, lazyStatements, listById, listColumn, rowsOf } from '../../db/statements.ts'
import type { RetentionRule } from '../../jobs/retention.ts'
import { minute } from '../../lib/clock.ts'
import type { Listing, ListRange } from '../../lib/list-range.ts'

export type WebhookRow = typeof webhooks.$inferSelect
export type DeliveryRow = typeof webhookDeliveries.$inferSelect
type Missed = { since: number; after: string; limit: number }
export type WebhookStore = ReturnType<typeof createWebhookStore>

/** The queries for each delivery are prepared. */
export function createWebhookStore(orm: Orm) {
  const statement = lazyStatements(orm.$client)
  const externalId = statement<{ externalId: string | null }, [string]>(
    'SELECT external_id AS externalId FROM users WHERE id = ?',
  )
  const someExternalId = statement('SELECT 1 FROM users WHERE external_id IS NOT NULL LIMIT 1')
  const upsert = statement(
    `INSERT INTO webhook_deliveries
       (webhook_id, id, event, status, attempts, response_status, response, created_at, attempted_at)
     SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 FROM webhooks WHERE id = ?1
     ON CONFLICT DO UPDATE SET status = excluded.status, attempts = excluded.attempts,
       response_status = excluded.response_status, response = excluded.response, attempted_at = excluded.attempted_at`,
  )
  const ofWebhook = (webhookId: string) => eq(webhookDeliveries.webhookId, webhookId)
  const oneDelivery = (webhookId: string, id: string) =>
    and(ofWebhook(webhookId), eq(webhookDeliveries.id, id))

  return {
    ...rowsOf(orm, webhooks),
    /** Newest first. */
    list: (range: ListRange): Listing<WebhookRow> => listById(orm, range, { id: webhooks.id }),
    listAll: (): WebhookRow[] => orm.select().from(webhooks).all(),
    count: (): number => countRows(orm, webhooks),
    /** Unless the webhook has been deleted. */
    upsertDelivery(row: DeliveryRow): void {
      const { webhookId, id, event, status, attempts, createdAt, attemptedAt } = row
      const response = [row.responseStatus, row.response] as const
      const times = [createdAt, attemptedAt] as const
      upsert().run(webhookId, id, JSON.stringify(event), status, attempts, ...response, ...times)
    },
    /** Events that were tried before count as failed. */
    countDropped(id: string, deliveryIds: readonly string[]): WebhookRow {
      const tried = and(ofWebhook(id), inArray(webhookDeliveries.id, [...deliveryIds]))
      orm.update(webhookDeliveries).set({ status: 'failed' }).where(tried).run()
      const droppedCount = sql`${webhooks.droppedCount} + ${deliveryIds.length}`
      return orm.update(webhooks).set({ droppedCount }).where(eq(webhooks.id, id)).returning().get()
    },
    updateDelivery: (webhookId: string, id: string, changes: Partial<DeliveryRow>): DeliveryRow =>
      orm
        .update(webhookDeliveries)
        .set(changes)
        .where(oneDelivery(webhookId, id))
        .returning()
        .get(),
    findDelivery: (webhookId: string, id: string): DeliveryRow | undefined =>
      orm.select().from(webhookDeliveries).where(oneDelivery(webhookId, id)).get(),
    /** Oldest first. */
    listUndelivered(webhookId: string, { since, after, limit }: Missed): DeliveryRow[] {
      const { id, status, createdAt } = webhookDeliveries
      const missed = [gt(id, after), ne(status, 'delivered'), gte(createdAt, since)]
      const rows = orm
        .select()
        .from(webhookDeliveries)
        .where(and(ofWebhook(webhookId), ...missed))
      return rows.orderBy(asc(id)).limit(limit).all()
    },
    /** Newest first. */
    listDeliveries: (webhookId: string, range: ListRange): Listing<DeliveryRow> =>
      listById(orm, range, { id: webhookDeliveries.id, which: ofWebhook(webhookId) }),
    hasExternalIds: (): boolean => someExternalId().get() !== null,
    findExternalId: (id: string): string | undefined =>
      externalId().get(id)?.externalId ?? undefined,
    listAdminIds(): string[] {
      const admin = and(eq(users.role, 'admin'), isNull(users.disabledAt), isNull(users.deletedAt))
      return listColumn(orm, users.id, admin, { sorted: true })
    },
  }
}

const key = [webhookDeliveries.webhookId, webhookDeliveries.id]
/** CROSS JOIN makes SQLite read the few webhooks first, then their deliveries. */
const olderDeliveries = `SELECT webhook_id, delivery.id FROM webhooks
  CROSS JOIN webhook_deliveries AS delivery ON webhook_id = webhooks.id AND delivery.id <=
    (SELECT id FROM webhook_deliveries WHERE webhook_id = webhooks.id ORDER BY id DESC LIMIT 1 OFFSET 100)
  LIMIT 500`
export const deliveryRetention: readonly RetentionRule[] = [
  { key, time: webhookDeliveries.attemptedAt, days: 30 },
  {
    key,
    time: webhookDeliveries.attemptedAt,
    days: 0,
    which: `(webhook_id, id) IN (${olderDeliveries})`,
    everyMilliseconds: minute,
  },
]
