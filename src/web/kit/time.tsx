import { Fragment } from 'preact'
import { absoluteTime, clockTime, relativeTime } from './format.ts'
import { Filled } from './texts.tsx'

/** A relative time, with the exact time on hover. */
export function Time({ at }: { at: string }) {
  return (
    <time dateTime={at} title={absoluteTime(at)}>
      {relativeTime(at)}
    </time>
  )
}

/** The time of day, with the exact time on hover. */
export const TimeOfDay = ({ at }: { at: string }) => (
  <time class="soft" dateTime={at} title={absoluteTime(at)}>
    {clockTime(at)}
  </time>
)

/** Texts with a `{time}`, one after the other. One whose time is null is left out. */
export function Times({ of }: { of: [text: string, at?: string | null][] }) {
  return (
    <>
      {of
        .filter(([, at]) => at !== null)
        .map(([text, at], index) => (
          <Fragment key={text}>
            {index > 0 && ', '}
            <Filled text={text} values={{ time: at && <Time at={at} /> }} />
          </Fragment>
        ))}
    </>
  )
}
