/** `verification_mail` as people write it: `Verification mail`. */
export function inWords(name: string): string {
  const text = name.replaceAll('_', ' ')
  return text.charAt(0).toUpperCase() + text.slice(1)
}
