import { type FieldProblem, problem } from './errors.ts'

export type TextRule = {
  /** Lengths in code points. */
  min?: number
  max: number
  /** Check lengths and blankness after trimming. */
  trimmed?: boolean
  notBlank?: boolean
  /** Also rejects tabs, line breaks and format characters, which can hide or reorder text. Those within emoji are allowed. */
  noControlCharacters?: boolean
}

/** Escapes control characters other than tab and line feed, which a terminal would obey, in the form of JSON. */
export function visibleControls(text: string): string {
  return text.replace(/[^\P{Cc}\t\n]/gu, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

// A cheap upper bound: a code point has at most two UTF-16 units.
const utf16UnitsPerCodePoint = 2

export function isMalformed(text: string): boolean {
  return !text.isWellFormed() || /[^\P{Cc}\t\n\r]/u.test(text)
}

export function textProblem(text: string, rule: TextRule): FieldProblem | undefined {
  if (isMalformed(text)) return problem('malformed_text')
  const checked = rule.trimmed ? text.trim() : text
  if (checked.length > rule.max * utf16UnitsPerCodePoint) return problem('too_long', rule.max)
  if (rule.notBlank && !isVisible(checked)) return problem('blank')
  const strict = rule.noControlCharacters && checked.replace(formatCharactersOfEmoji, '')
  if (strict && /[\p{Cc}\p{Cf}]/u.test(strict)) return problem('control_characters')
  return lengthProblem(codePoints(checked), rule)
}

// Unicode counts the empty Braille pattern and the null notehead as visible, but they are not.
const visibleCharacter =
  /[^\p{White_Space}\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cf}\p{M}\u2800\u{1D159}]/u

export function isVisible(text: string): boolean {
  return visibleCharacter.test(text)
}

// Choice: only the standard flags made of tag characters are allowed, because other tags could hide a whole text.
const formatCharactersOfEmoji =
  /(?<=\p{Extended_Pictographic}[\uFE0F\p{Emoji_Modifier}]?)\u200D(?=\p{Extended_Pictographic})|\p{RGI_Emoji_Tag_Sequence}/gv

function lengthProblem(length: number, { min = 0, max }: TextRule): FieldProblem | undefined {
  if (length > max) return problem('too_long', max)
  if (length >= min) return undefined
  return length === 0 ? problem('blank') : problem('too_short', min)
}

export function codePoints(text: string): number {
  let count = text.length
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit >= 0xd800 && unit <= 0xdbff) count--
  }
  return count
}

const emailPattern =
  /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*@([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/i
const maxEmailLength = 254
const maxLocalPartLength = 64

export function normalizeEmail(text: string): string | undefined {
  const email = text.trim()
  if (email.length > maxEmailLength || email.indexOf('@') > maxLocalPartLength) return undefined
  return emailPattern.test(email) ? storedEmail(email) : undefined
}

/** The stored form of a valid address. Phone keyboards add a space after it. */
export const storedEmail = (email: string): string => email.trim().toLowerCase()

/** A name in a mail. Anybody can choose one that mail programs would show as a link. */
export function plainName(name: string): string {
  return name.replace(/[/:@\\]+|\.(?=\S)/g, ' ')
}

/** Removes e-mail addresses from an error message: mail servers quote the address that they refuse. */
export function withoutAddresses(text: string): string {
  return text.replace(/[^\s<>@"]+@[^\s<>@"]+/g, '…@…')
}

/** User information could imitate a host; format characters hide or reorder text. */
export function isHttpUrl(text: string): boolean {
  if (!/^https?:\/\//i.test(text) || /[\s\p{Cc}\p{Cf}]/u.test(text)) return false
  const url = text.isWellFormed() ? URL.parse(text) : null
  return url?.username === '' && url.password === ''
}

const ownScheme =
  /^(?!(?:about|blob|data|file|filesystem|ftp|http|intent|javascript|vbscript|view-source|ws|wss):)[a-z][a-z\d+.-]*:\/\//i

/** An absolute https URL, one of an app's own scheme, or an http URL of this machine. */
export function isAppUrl(text: string): boolean {
  if (/[\s\p{Cc}\p{Cf}]/u.test(text) || !text.isWellFormed()) return false
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '') return false
  if (url.protocol === 'http:') return /^(localhost|127\.0\.0\.1|\[::1\])$/.test(url.hostname)
  return ownScheme.test(text)
}

/** `type/subtype` without parameters (RFC 6838). */
export function isMediaType(text: string): boolean {
  return /^[a-z0-9][a-z0-9!#$&^_.+-]*\/[a-z0-9][a-z0-9!#$&^_.+-]*$/i.test(text)
}

/** The value of a text as JSON; undefined for any other text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The beginning of a text in at most `max` code points, cut at a word. */
export function excerptOf(text: string, max: number): string {
  const characters = [...text.slice(0, 2 * max + 2)]
  if (characters.length <= max) return text
  const cut = characters.slice(0, max - 1).join('')
  const isWhole = /^\s/.test(characters[max - 1] ?? '')
  const end = isWhole ? -1 : cut.search(/\s\S*$/)
  return `${(end > 0 ? cut.slice(0, end) : cut).trimEnd()}…`
}
