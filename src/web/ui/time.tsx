import { absoluteTime, relativeTime } from './format.ts'

/** A time as people say it, with the exact one on hover. */
export function Time({ at }: { at: string }) {
  return (
    <time dateTime={at} title={absoluteTime(at)}>
      {relativeTime(at)}
    </time>
  )
}
