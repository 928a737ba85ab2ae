const tints = 6

const pictureWidth = 160

/** The picture, or initials, in the same place. A picture on another host would reveal to that host who looks. */
export function Avatar({ name, picture }: { name: string; picture?: string | null | undefined }) {
  const own = picture ? ownFile(picture) : undefined
  if (own) return <img class="avatar" src={thumbnail(own, pictureWidth)} alt="" loading="lazy" />
  return (
    <span class="avatar" aria-hidden="true" data-tint={tintOf(name)}>
      {initials(name)}
    </span>
  )
}

/** The same person has the same tint everywhere. */
function tintOf(name: string): number {
  let sum = 0
  for (const letter of name) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 9_973
  return sum % tints
}

function initials(name: string): string {
  const parts = name.trim().split(/\s+/)
  const chosen = parts.length > 1 ? [parts[0], parts.at(-1)] : [parts[0]]
  return chosen
    .map((part) => [...(part ?? '')][0] ?? '')
    .join('')
    .toUpperCase()
}

/** @param width one of those that the service makes */
export const thumbnail = (own: string, width: number) =>
  `${own}${own.includes('?') ? '&' : '?'}w=${width}`

/** The path of a file of this service, which may be reached by a name other than its public one. */
export function ownFile(url: string): string | undefined {
  if (!URL.canParse(url)) return undefined
  const { pathname, search } = new URL(url)
  return /^\/v1\/files\/[^/]+\/[^/]+$/.test(pathname) ? pathname + search : undefined
}
