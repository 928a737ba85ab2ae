import { selectedId } from '../panes.tsx'
import { AnnouncementDetails } from './announcement-details.tsx'
import { AnnouncementForm } from './announcement-form.tsx'
import { History } from './history.tsx'
import './announcements.css'

export function AnnouncementsPage() {
  const id = selectedId()
  if (id !== undefined) return <AnnouncementDetails key={id} id={id} />
  return (
    <div class="page">
      <header>
        <div>
          <h1>Broadcast</h1>
          <p>A notification for many people at once, on all their devices.</p>
        </div>
      </header>
      <AnnouncementForm />
      <History />
    </div>
  )
}
