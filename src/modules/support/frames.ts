import { type Static, Type } from '@sinclair/typebox'
import { Sample } from '../../api/fields.ts'
import { samples } from '../../api/samples.ts'
import type { ServerFrames } from '../../realtime/frames.ts'
import { DeskTicketListItem, TicketListItem } from './model.ts'

export const OwnTicketUpdatedFrame = Type.Object({
  type: Type.Literal('ticket_updated'),
  ticket: TicketListItem,
})
export type OwnTicketUpdatedFrame = Static<typeof OwnTicketUpdatedFrame>

export const TicketCreatedFrame = Type.Object(
  { type: Type.Literal('ticket_created'), ticket: DeskTicketListItem },
  { description: 'With `events=support`, for admins: somebody has opened a ticket.' },
)
export type TicketCreatedFrame = Static<typeof TicketCreatedFrame>

export const TicketUpdatedFrame = Type.Object({
  type: Type.Literal('ticket_updated'),
  ticket: DeskTicketListItem,
})
export type TicketUpdatedFrame = Static<typeof TicketUpdatedFrame>

export const ViewingClientFrame = Type.Object(
  { type: Type.Literal('viewing'), ticket_id: Sample(samples.ticketId) },
  {
    description:
      'For admins: notifies the other admins that you have this ticket open. Repeat it every 20 seconds.',
  },
)

export const TicketViewedFrame = Type.Object(
  {
    type: Type.Literal('ticket_viewed'),
    ticket_id: Sample(samples.ticketId),
    user_id: Sample(samples.host.id),
  },
  { description: 'With `events=support`, for admins: another admin has this ticket open.' },
)
export type TicketViewedFrame = Static<typeof TicketViewedFrame>

const EitherUpdatedFrame = Type.Union([OwnTicketUpdatedFrame, TicketUpdatedFrame], {
  description: 'With `events=support`: a ticket changed. Owners and admins get different fields.',
})

export const serverFrames: ServerFrames = {
  ticket_created: { schema: TicketCreatedFrame, group: 'support' },
  ticket_updated: { schema: EitherUpdatedFrame, group: 'support' },
  ticket_viewed: { schema: TicketViewedFrame, group: 'support' },
}

export function deskFrame(
  type: 'ticket_created' | 'ticket_updated',
  ticket: Static<typeof DeskTicketListItem>,
): TicketCreatedFrame | TicketUpdatedFrame {
  return { type, ticket }
}
