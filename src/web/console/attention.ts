import { signal } from '@preact/signals'
import { navigate } from '../kit/router.ts'
import { fill, texts } from '../kit/texts.tsx'
import { client, user } from './session.ts'

const storageKey = 'hostline notify'
// Browsers of Android have the constructor, and it throws.
export const canNotify = 'Notification' in globalThis && !navigator.userAgent.includes('Android')
const isAllowed = () => canNotify && Notification.permission === 'granted'
/** Chosen in this browser, and allowed by it. */
export const notifies = signal(isAllowed() && localStorage.getItem(storageKey) === 'on')

export async function switchNotifications(isOn: boolean): Promise<void> {
  if (isOn) await Notification.requestPermission()
  notifies.value = isOn && isAllowed()
  if (notifies.value) localStorage.setItem(storageKey, 'on')
  else localStorage.removeItem(storageKey)
}

/** @param id replaces a notification of the same thing, such as one of another tab */
function notify(id: string, title: string, address: string) {
  if (!document.hidden || !notifies.value || !user.value) return
  const shown = new Notification(title, { tag: id })
  shown.onclick = () => {
    focus()
    navigate(address)
  }
}

const words = texts.console.shell

const notifyOfTicket = (text: string, { id, subject }: { id: string; subject: string }) =>
  notify(id, fill(text, { subject }), `/console/desk/${id}`)

client.on('ticket_created', ({ ticket }) => {
  // One that the desk opened waits for its owner.
  if (ticket.waiting_since !== null) notifyOfTicket(words.newTicket, ticket)
})
client.on('ticket_updated', ({ ticket }) => {
  // Equal when it is this change that made it wait.
  const waits = 'waiting_since' in ticket && ticket.waiting_since === ticket.updated_at
  if (waits) notifyOfTicket(words.answered, ticket)
})
client.on('report_created', ({ report: { id, reported } }) =>
  notify(id, fill(words.reported, { name: reported.display_name }), `/console/reports/${id}`),
)
