export function DeskViews() {
  return null
}
