import type { DeskTicketListItem } from '../../../../client/src/client.ts'

export type Status = DeskTicketListItem['status']
export type Priority = DeskTicketListItem['priority']
export type Category = DeskTicketListItem['category']

export const statusNames: Record<Status, string> = {
  open: 'Open',
  in_progress: 'In progress',
  resolved: 'Resolved',
  closed: 'Closed',
}
export const priorityNames: Record<Priority, string> = {
  low: 'Low',
  normal: 'Normal',
  high: 'High',
  urgent: 'Urgent',
}
export const categoryNames: Record<Category, string> = {
  billing: 'Billing',
  technical: 'Technical',
  account: 'Account',
  other: 'Other',
}

export const statuses = Object.keys(statusNames) as Status[] // the keys of the records above
export const priorities = Object.keys(priorityNames) as Priority[]
export const categories = Object.keys(categoryNames) as Category[]
