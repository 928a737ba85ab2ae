import { absoluteTime, relativeTime } from './format.ts'

/** A relative time, with the exact time on hover. */
export function Time({ at }: { at: string }) {
  return (
    <time dateTime={at} title={absoluteTime(at)}>
      {relativeTime(at)}
    </time>
  )
}
