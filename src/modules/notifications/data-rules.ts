import { type FieldProblems, problem } from '../../lib/errors.ts'
import { parseId } from '../../lib/ids.ts'

/** A flat object of texts; what is in it depends on the type (decisions 8). */
export type NotificationData = Record<string, string>

const maxBytes = 2_048
const keyPattern = /^[A-Za-z_][\w.-]{0,63}$/

const isId = (text: string) => parseId(text) !== undefined
const isPlatformId = (text: string) => text.length > 0 && text.length <= 128

/** What the values of well-known keys must look like; nobody has to name them. */
const rules: Record<string, (text: string) => boolean> = {
  amount: (text) => /^-?\d{1,15}(\.\d{1,8})?$/.test(text),
  currency: (text) => /^[A-Z]{3}$/.test(text),
  call_session_id: isPlatformId,
  host_id: isId,
  guest_id: isId,
  follower_id: isId,
  ticket_id: isId,
  message_id: isId,
  broadcast_id: isId,
}

/** What is wrong with the `data` of a notification, beyond its not being a flat object of texts. */
export function dataProblems(data: NotificationData | null | undefined): FieldProblems {
  if (typeof data !== 'object' || data === null) return {}
  const bytes = Buffer.byteLength(JSON.stringify(data))
  if (bytes > maxBytes) return { data: problem('too_many_bytes', maxBytes) }
  const wrong = Object.entries(data).find(([key, value]) => !isEntry(key, value))
  return wrong ? { data: problem('notification_data', wrong[0].slice(0, 64)) } : {}
}

function isEntry(key: string, value: unknown) {
  if (typeof value !== 'string' || !value.isWellFormed() || value.includes('\0')) return false
  return keyPattern.test(key) && (rules[key]?.(value) ?? true)
}

// What push services keep to themselves.
const reservedPattern = /^(from|type|message_type|notification_id)$|^(google|gcm)/i

/** What of `data` a push service takes. */
export function pushableData(data: NotificationData): NotificationData {
  return Object.fromEntries(Object.entries(data).filter(([key]) => !reservedPattern.test(key)))
}
