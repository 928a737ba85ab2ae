import { type Priority, priorityNames, type Status, statusNames } from './words.ts'

const statusTones: Record<Status, string> = {
  open: 'accent',
  in_progress: '',
  resolved: 'good',
  closed: '',
}

export function StatusMark({ status }: { status: Status }) {
  return <span class={`badge ${statusTones[status]}`}>{statusNames[status]}</span>
}

/** Normal priority has no mark. */
export function PriorityMark({ priority }: { priority: Priority }) {
  if (priority === 'normal') return null
  const tone = priority === 'urgent' ? 'danger' : priority === 'high' ? 'warning' : ''
  return <span class={`badge ${tone}`}>{priorityNames[priority]}</span>
}
