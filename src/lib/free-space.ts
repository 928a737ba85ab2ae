import { statfsSync } from 'node:fs'

export function freeBytesAt(path: string): number {
  const { bavail, bsize } = statfsSync(path)
  return bavail * bsize
}
