import type { Connection } from '../../src/db/open.ts'

/** Rows of a filled database that the operations refer to. */
export type Landmarks = {
  /** 1 is the full size. */
  scale: number
  /** Ids; the first ones are `cast`. */
  people: string[]
  bigConversation: string
  smallConversation: string
  /** Ada's with the busy person. */
  busyConversation: string
  /** The newest messages to Cleo, in their order. */
  newestToCleo: string[]
}

/** The tools of a fill. The same scale makes the same rows, except for the salt of the password. */
export type Dataset = Connection & {
  landmarks: Landmarks
  newId: () => string
  clock: { now(): number; every(): () => void }
  /** A number from 0 to `below` − 1. */
  pick(below: number): number
  /** Runs `work` with 0 … `count` − 1, in large transactions. */
  repeat(count: number, work: (n: number) => void): void
}

export type Fill = {
  name: string
  fill(dataset: Dataset): void | Promise<void>
  /** Checks of the filled rows: queries for the number of wrong rows, or for the difference from a number. */
  rules: (landmarks: Landmarks) => Record<string, string>
}

/** The people who are measured, in the order of `Landmarks.people`. */
export const cast = ['ada', 'bob', 'cleo', 'dora', 'busy', 'root', 'eve', 'max'] as const
export type Person = (typeof cast)[number]
export const admins: readonly Person[] = ['root', 'eve', 'max']

export const password = 'correct horse battery'
export const addressOf = (n: number) => `${cast[n] ?? `person-${n}`}@growth.example`

export const idOf = ({ people }: Landmarks, person: Person) => people[cast.indexOf(person)] ?? ''

export const atScale = (fullSize: number, scale: number) =>
  Math.max(1, Math.round(fullSize * scale))

/** A rule: there are as many `rows` as expected. */
export const differs = (rows: string, expected: number) =>
  `SELECT (SELECT count(*) FROM ${rows}) <> ${expected}`
