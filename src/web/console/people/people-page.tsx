export function PeoplePage() {
  return <h1>People</h1>
}
