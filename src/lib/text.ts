import { type FieldProblem, problem } from './errors.ts'

export type TextRule = {
  /** Lengths in code points. */
  min?: number
  max: number
  /** Check lengths and blankness after trimming. */
  trimmed?: boolean
  notBlank?: boolean
  /** Also rejects tabs, line ends and format characters, which hide or reorder text; those within emoji pass. */
  noControlCharacters?: boolean
}

// A cheap upper bound: a code point has at most two UTF-16 units.
const utf16UnitsPerCodePoint = 2

/** Whether a text is no well-formed Unicode, or has control characters other than tab and line ends. */
export function isMalformed(text: string): boolean {
  return !text.isWellFormed() || /[^\P{Cc}\t\n\r]/u.test(text)
}

/** Returns the first problem of a text, or undefined. */
export function textProblem(text: string, rule: TextRule): FieldProblem | undefined {
  if (isMalformed(text)) return problem('malformed_text')
  const judged = rule.trimmed ? text.trim() : text
  if (judged.length > rule.max * utf16UnitsPerCodePoint) return problem('too_long', rule.max)
  if (rule.notBlank && !isVisible(judged)) return problem('blank')
  if (rule.noControlCharacters && hasControlCharacters(judged)) return problem('control_characters')
  return lengthProblem(codePoints(judged), rule)
}

// Two symbols are invisible although Unicode counts them as visible: the empty Braille pattern and the null notehead.
const visibleCharacter =
  /[^\p{White_Space}\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cf}\p{M}\u2800\u{1D159}]/u

/** Whether a text is visible: it has more than spaces, fillers, control and format characters, or marks without a
 *  letter. */
export function isVisible(text: string): boolean {
  return visibleCharacter.test(text)
}

// Choice: of the flags made of tags only the standard ones pass; other tags could hide a whole text.
const formatCharactersOfEmoji =
  /(?<=\p{Extended_Pictographic}[\uFE0F\p{Emoji_Modifier}]?)\u200D(?=\p{Extended_Pictographic})|\p{RGI_Emoji_Tag_Sequence}/gv

function hasControlCharacters(text: string) {
  return /[\p{Cc}\p{Cf}]/u.test(text.replace(formatCharactersOfEmoji, ''))
}

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

/** The stored form of an ASCII e-mail address, in lower case; undefined when it is invalid. */
export function normalizeEmail(text: string): string | undefined {
  const email = text.trim()
  if (email.length > maxEmailLength || email.indexOf('@') > maxLocalPartLength) return undefined
  return emailPattern.test(email) ? storedEmail(email) : undefined
}

/** The stored form of a valid address. Phone keyboards add a space after it. */
export const storedEmail = (email: string): string => email.trim().toLowerCase()

/** Removes addresses from a text for logs and operators: mail servers quote the address that they refuse. */
export function withoutAddresses(text: string): string {
  return text.replace(/[^\s<>@]+@[^\s<>@]+/g, '…@…')
}

/** An absolute http or https URL. Rejects user information, which could imitate a host, and characters that hide or
 *  reorder text. */
export function isHttpUrl(text: string): boolean {
  if (!/^https?:\/\//i.test(text) || /[\s\p{Cc}\p{Cf}]/u.test(text)) return false
  const url = text.isWellFormed() ? URL.parse(text) : null
  return url?.username === '' && url.password === ''
}

const mediaTypePattern = /^[a-z0-9][a-z0-9!#$&^_.+-]*\/[a-z0-9][a-z0-9!#$&^_.+-]*$/i

/** `type/subtype` without parameters (RFC 6838). */
export function isMediaType(text: string): boolean {
  return mediaTypePattern.test(text)
}
