import type { TSchema } from '@sinclair/typebox'
import type { AnyElysia } from 'elysia'
import type { Config } from './config.ts'
import type { AuditTrail } from './db/audit-trail.ts'
import type { Orm } from './db/open.ts'
import type { AfterCommit, Write } from './db/writer.ts'
import type { Outbox } from './jobs/outbox.ts'
import type { JobHandlers } from './jobs/runner.ts'
import type { Clock } from './lib/clock.ts'
import type { DomainEvent, Events } from './lib/events.ts'
import type { NewId } from './lib/ids.ts'
import type { Log } from './lib/log.ts'
import type { EventType } from './lib/vocabulary.ts'
import type { ClientFrames, ServerFrames } from './realtime/frames.ts'
import type { Hub } from './realtime/hub.ts'

/** What every module is handed. */
export type Core = Readonly<{
  config: Config
  orm: Orm
  write: Write
  afterCommit: AfterCommit
  newId: NewId
  clock: Clock
  log: Log
  hub: Hub
  outbox: Outbox
  audit: AuditTrail
  events: Events
}>

/** The face of every module: what `app.ts`, the socket channel, the job runner and the account of a person ask of it. */
export type Module = {
  routes: AnyElysia
  /** What clients send over the channel, by type. */
  frames?: ClientFrames
  /** What the server sends over the channel, by type. */
  serverFrames?: ServerFrames
  jobs?: Partial<JobHandlers>
  /** What others are told of an event: the thing as REST shows it; undefined when it is gone. */
  eventData?: Partial<Record<EventType, (ids: DomainEvent['ids']) => object | undefined>>
  /** What is sent to endpoints of others, by event: for the API description. */
  webhooks?: Record<string, TSchema>
  /** Everything that the module keeps of a person, by section, read while it is written out; undefined
   *  in the place of rows that are passed over. */
  exportOf?: (userId: string) => Record<string, Iterable<unknown>>
  /** Takes a person out of what the module keeps, inside the write that removes the account. */
  forget?: (userId: string) => void
  /** Removes what else is left of somebody who is gone, which may be much: each piece is for a write of its own. */
  erase?: (userId: string) => Iterable<() => void>
  /** Stops what runs by itself. */
  stop?: () => void
}
