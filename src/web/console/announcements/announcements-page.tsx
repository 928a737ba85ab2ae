export function AnnouncementsPage() {
  return <h1>Announcements</h1>
}
