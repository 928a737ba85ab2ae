import type { Hub } from '../../realtime/hub.ts'
import type { DeskItem } from './desk-store.ts'
import { ownTicketUpdatedFrame, ticketCreatedFrame, ticketUpdatedFrame } from './frames.ts'

export type Announcements = ReturnType<typeof createAnnouncements>

/** Tells the open sockets what became of a ticket, once it is safe on the disk. */
export function createAnnouncements(hub: Hub) {
  return {
    created(item: DeskItem): void {
      hub.sendToAdmins(ticketCreatedFrame(item))
    },
    updated(item: DeskItem): void {
      hub.send([item.userId], ownTicketUpdatedFrame(item))
      hub.sendToAdmins(ticketUpdatedFrame(item))
    },
    /** Something changed that the owner does not see. */
    updatedForDesk(item: DeskItem): void {
      hub.sendToAdmins(ticketUpdatedFrame(item))
    },
  }
}
