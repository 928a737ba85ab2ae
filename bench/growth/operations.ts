import { chatOperations } from './chat-operations.ts'
import type { Scope } from './dataset.ts'
import { notificationOperations } from './notification-operations.ts'
import type { Operation } from './operation.ts'
import { supportOperations } from './support-operations.ts'

/** Everything that is measured. */
export const operations: Record<Scope, readonly Operation[]> = {
  chat: chatOperations,
  support: supportOperations,
  notifications: notificationOperations,
}
