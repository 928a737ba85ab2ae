import { count } from '../kit/format.ts'
import { texts } from './language.tsx'

export function UnreadBadge({ unread }: { unread: number }) {
  if (unread === 0) return null
  return (
    <span class="badge accent number">
      {count(unread)}
      <span class="visually-hidden"> {texts.value.unread}</span>
    </span>
  )
}
