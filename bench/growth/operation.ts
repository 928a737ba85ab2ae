import type { Person } from './dataset.ts'
import type { Request, Subject } from './subject.ts'

/** Something whose cost must not depend on how much there is. */
export type Operation = {
  name: string
  /** Done once for each server, before it is measured. */
  prepare(subject: Subject): Sampling | Promise<Sampling>
  /** Why its growth is told, but not judged. */
  excuse?: string
  /** What it may take at the largest size, besides: a share of the samples in so many milliseconds. */
  goal?: [share: number, milliseconds: number]
}
export type Sampling = {
  /** Done before each sample, and not measured. */
  before?(n: number): Promise<unknown>
  /** What is measured. */
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
