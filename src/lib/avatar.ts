const hues = 12

type Person = { id: string; displayName: string; avatarUrl: string | null }
export type AvatarUrl = (person: Person) => string

export function createAvatarUrls(publicUrl: string): AvatarUrl {
  return ({ id, displayName, avatarUrl }) => {
    if (avatarUrl !== null) return avatarUrl
    const hue = [...id].reduce((sum, character) => sum + character.charCodeAt(0), 0) % hues
    return `${publicUrl}/v1/avatars/${hue}/${encodeURIComponent(initialsOf(displayName))}.svg`
  }
}

export function avatarSvg(hueText: string, fileName: string): string | undefined {
  const initials = /^([\p{L}\p{N}?]{1,4})\.svg$/u.exec(fileName)?.[1]
  const hue = /^\d{1,2}$/.test(hueText) ? Number(hueText) : hues
  if (initials === undefined || hue >= hues) return undefined
  const colour = `hsl(${(hue * 360) / hues} 45% 42%)`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 96 96" width="96" height="96"><rect width="96" height="96" fill="${colour}"/><text x="48" y="50" dominant-baseline="middle" text-anchor="middle" font-family="system-ui, sans-serif" font-size="40" fill="#fff">${initials}</text></svg>`
}

function initialsOf(displayName: string) {
  const words = displayName.split(/[\s._-]+/).flatMap((word) => /[\p{L}\p{N}]/u.exec(word) ?? [])
  const [first = '?', ...rest] = words
  return capital(first) + capital(rest.at(-1) ?? '')
}

// A letter whose capital has several characters (ß) stays lower case.
function capital(letter: string) {
  const upper = letter.toUpperCase()
  return [...upper].length === 1 ? upper : letter
}
