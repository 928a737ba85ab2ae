import type { TSchema } from '@sinclair/typebox'
import type { Config } from './config.ts'
import type { AuditTrail } from './db/audit-trail.ts'
import type { Orm } from './db/open.ts'
import type { Settings } from './db/settings-store.ts'
import type { AfterCommit, Write } from './db/writer.ts'
import type { RouteApp } from './http/request-context.ts'
import type { DeliveryStore } from './jobs/delivery-store.ts'
import type { Outbox } from './jobs/outbox.ts'
import type { RetentionRule } from './jobs/retention.ts'
import type { JobHandlers } from './jobs/runner.ts'
import type { Clock } from './lib/clock.ts'
import type { DomainEvent, Events } from './lib/events.ts'
import type { NewId } from './lib/ids.ts'
import type { Log } from './lib/log.ts'
import type { EventType, PurgedKind } from './lib/vocabulary.ts'
import type { ClientFrames, ServerFrames } from './realtime/frames.ts'
import type { Hub } from './realtime/hub.ts'

export type Core = Readonly<{
  config: Config
  settings: Settings
  orm: Orm
  write: Write
  afterCommit: AfterCommit
  newId: NewId
  clock: Clock
  log: Log
  hub: Hub
  outbox: Outbox
  deliveries: DeliveryStore
  audit: AuditTrail
  events: Events
}>

/** Deletes at most `limit` rows of a deleted user in one write, after the row that the previous call returned.
 *  @returns the id of the last row; undefined when there was none */
export type Erase = (userId: string, limit: number, after?: string) => string | undefined

export type Purge = {
  count: (userId: string) => Iterable<number>
  /** Like `Erase`, for what a purged user has written; also counts it. */
  some: (
    userId: string,
    limit: number,
    after?: string,
  ) => { last: string; count: number } | undefined
}

export type ExportedList = {
  description: string
  item: TSchema
  /** Read while it is streamed. An iterator may yield undefined for a skipped row, so that other work can run. */
  each: (userId: string) => Iterable<unknown>
}

export type Module = {
  /** Adds the routes to the application. */
  routes: (app: RouteApp) => void
  frames?: ClientFrames
  serverFrames?: ServerFrames
  jobs?: Partial<JobHandlers>
  retention?: readonly RetentionRule[]
  /** Loads the data of an event in the form of REST; undefined when the subject was deleted. */
  eventData?: Partial<Record<EventType, (ids: DomainEvent['ids']) => object | undefined>>
  webhooks?: Record<string, TSchema>
  /** The lists of a user's export that this module has, by name. */
  exports?: Record<string, ExportedList>
  /** Removes a user from this module's data, inside the write that deletes the account. */
  forget?: (userId: string) => void
  erase?: Erase
  purge?: Partial<Record<PurgedKind, Purge>>
  stop?: () => void
}

export type MayTalk = (userId: string, otherId: string) => boolean

/** The newest unread message of a conversation. */
export type UnreadMessage = {
  id: string
  seq: number
  /** The time of the oldest unread message in ms since the epoch. */
  since: number
  /** Null for a notice of the platform, as is the name. */
  senderId: string | null
  senderName: string | null
  text: string
  createdAt: number
}

/** Resolves a user id, or `ext:` and an external id, to a user id; undefined if no user can have it. */
export type ResolveUser = (reference: string) => string | undefined
