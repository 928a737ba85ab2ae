import type { Connection } from '../../src/db/open.ts'

/** What can be found again in a filled database. */
export type Landmarks = {
  /** 1 is the full size. */
  scale: number
  /** Ids; the first ones are `cast`. */
  people: string[]
  bigConversation: string
  smallConversation: string
  /** Ada's with the busy one. */
  busyConversation: string
  /** The newest messages to Cleo, in their order. */
  newestToCleo: string[]
}

/** What a fill works with. The same scale makes the same rows, but for the salt of the password. */
export type Dataset = Connection & {
  landmarks: Landmarks
  newId: () => string
  clock: { now(): number; every(): () => void }
  /** From 0 up to, not with, `below`. */
  pick(below: number): number
  /** Runs `work` with 0 … `count` − 1, in large transactions. */
  repeat(count: number, work: (n: number) => void): void
}

/** One part of the database. */
export type Fill = {
  name: string
  fill(dataset: Dataset): void | Promise<void>
  /** Rules of what was filled in: queries that count the rows which break them, or differ from a number. */
  rules: (landmarks: Landmarks) => Record<string, string>
}

/** The people who are measured, in the order of `Landmarks.people`. */
export const cast = ['ada', 'bob', 'cleo', 'dora', 'busy', 'root', 'eve', 'max'] as const
export type Person = (typeof cast)[number]
/** Those of the cast who work at the desk. */
export const admins: readonly Person[] = ['root', 'eve', 'max']

export const password = 'correct horse battery'
export const addressOf = (n: number) => `${cast[n] ?? `person-${n}`}@growth.example`

export const idOf = ({ people }: Landmarks, person: Person) => people[cast.indexOf(person)] ?? ''

/** How many there are of something at a scale. */
export const atScale = (fullSize: number, scale: number) =>
  Math.max(1, Math.round(fullSize * scale))

/** A rule: there are as many `rows` as expected. */
export const differs = (rows: string, expected: number) =>
  `SELECT (SELECT count(*) FROM ${rows}) <> ${expected}`
