import { useShortcut } from '../../ui/shortcuts.tsx'
import { user } from '../session.ts'
import type { Change } from './change.ts'

/** Shortcuts for the open ticket, or for the selected tickets. */
export function ChangeShortcuts({ apply }: { apply: (change: Change) => void }) {
  useShortcut('a', 'Assign to me', () => apply({ assignee_id: user.value?.id ?? null }))
  useShortcut('e', 'Resolve', () => apply({ status: 'resolved' }))
  useShortcut('p', 'Set in progress', () => apply({ status: 'in_progress' }))
  useShortcut('c', 'Close', () => apply({ status: 'closed' }))
  useShortcut('1', 'Low priority', () => apply({ priority: 'low' }))
  useShortcut('2', 'Normal priority', () => apply({ priority: 'normal' }))
  useShortcut('3', 'High priority', () => apply({ priority: 'high' }))
  useShortcut('4', 'Urgent priority', () => apply({ priority: 'urgent' }))
  return null
}
