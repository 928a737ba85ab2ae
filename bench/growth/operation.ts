import type { Person } from './dataset.ts'
import type { Request, Subject } from './subject.ts'

/** An operation whose cost must not depend on the size of the database. */
export type Operation = {
  name: string
  /** Runs once on each server, before the measurement. */
  prepare(subject: Subject): Sampling | Promise<Sampling>
  /** Reason for reporting the growth without failing on it. */
  excuse?: string
  /** An absolute limit at the largest size: a share of the samples within so many milliseconds. */
  goal?: [share: number, milliseconds: number]
}
export type Sampling = {
  /** Runs before each sample, outside the measured time. */
  before?(n: number): Promise<unknown>
  /** The measured request. */
  request(n: number): Request
}

const largestPart = 100

export function reading(as: Person, path: string) {
  return { request: (): Request => ({ as, method: 'GET', path, status: 200 }) }
}

/** @returns the cursor that continues after about `rows` rows */
export async function walk(
  subject: Subject,
  as: Person,
  path: string,
  rows: number,
): Promise<string> {
  let cursor = ''
  for (let passed = 0; passed < rows; passed += largestPart) {
    const limit = Math.min(largestPart, rows - passed)
    const part = await subject.read(as, `${path}?limit=${limit}${cursor && `&cursor=${cursor}`}`)
    cursor = part.pagination.cursor ?? ''
    if (cursor === '') throw new Error(`${path} has fewer than ${rows} rows`)
  }
  return cursor
}
