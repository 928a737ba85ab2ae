export function DeskPage() {
  return <h1>Desk</h1>
}
