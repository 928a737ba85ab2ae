import { messagesFill } from './chat-fills.ts'
import type { Fill, Scope } from './dataset.ts'
import { notificationsFill } from './notification-fill.ts'
import { peopleFill } from './people-fill.ts'
import { ticketsFill } from './support-fill.ts'

/** What is filled in, in this order. */
export const fills: Record<Scope, readonly Fill[]> = {
  chat: [peopleFill, messagesFill],
  support: [peopleFill, ticketsFill],
  notifications: [peopleFill, notificationsFill],
}
