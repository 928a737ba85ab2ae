import { peopleFill, sessionsFill } from './account-fill.ts'
import { accountOperations } from './account-operations.ts'
import { messagesFill } from './chat-fill.ts'
import { chatOperations } from './chat-operations.ts'
import type { Fill } from './dataset.ts'
import { notificationsFill } from './notification-fill.ts'
import { notificationOperations } from './notification-operations.ts'
import type { Operation } from './operation.ts'
import { ticketsFill } from './support-fill.ts'
import { supportOperations } from './support-operations.ts'

/** Each scope has databases of its own, so that it does not wait for rows that only others need: the fills in their
 *  order, and the operations. */
export const scopes = {
  accounts: { fills: [peopleFill(100_000), sessionsFill], operations: accountOperations },
  chat: { fills: [peopleFill(100_000), messagesFill(1_000_000)], operations: chatOperations },
  support: { fills: [peopleFill(10_000), ticketsFill(200_000)], operations: supportOperations },
  notifications: {
    fills: [peopleFill(10_000), notificationsFill],
    operations: notificationOperations,
  },
} satisfies Record<string, { fills: readonly Fill[]; operations: readonly Operation[] }>

export type Scope = keyof typeof scopes
export const isScope = (name: string): name is Scope => name in scopes
