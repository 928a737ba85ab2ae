/** Initials only: a picture on another host would reveal to that host who looks. */
export function Avatar({ name }: { name: string }) {
  return (
    <span class="avatar" aria-hidden="true">
      {initials(name)}
    </span>
  )
}

function initials(name: string): string {
  const parts = name.trim().split(/\s+/)
  const chosen = parts.length > 1 ? [parts[0], parts.at(-1)] : [parts[0]]
  return chosen
    .map((part) => [...(part ?? '')][0] ?? '')
    .join('')
    .toUpperCase()
}
