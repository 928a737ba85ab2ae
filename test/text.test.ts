import { expect, test } from 'bun:test'
import { isMalformed, isVisible } from '../src/lib/text.ts'

test.each([
  ['nothing', ''],
  ['spaces of every kind', ' \t\n\u00a0\u2003\u3000\u2028'],
  ['characters without width', '\u200b\u200c\u200d\u2060\ufeff'],
  ['soft hyphens and joiners', '\u00ad\u034f\u180e'],
  ['the fillers of Hangul', '\u115f\u1160\u3164\uffa0'],
  ['the empty Braille pattern', '\u2800'],
  ['the null notehead', '\u{1d159}'],
  ['changes of direction', '\u202a\u202e\u2066\u2069'],
  ['selectors and tags', '\ufe0f\u{e0061}\u{e0100}'],
  ['control characters', '\u0001\u007f\u0085'],
  ['marks without a letter', '\u0301\u20dd'],
])('%s is invisible', (_, text) => {
  expect(isVisible(text)).toBe(false)
  expect(isVisible(`${text}.${text}`)).toBe(true)
})

test.each(['a', '李', 'ا', '한', '🙂', '❤️', '👩‍🚀', '\ue000', '\u{1fbff}'])(
  '%s is visible',
  (text) => {
    expect(isVisible(text)).toBe(true)
  },
)

test.each([
  '\0',
  '\u0001',
  '\b',
  '\u000b',
  '\f',
  '\u001b[31m',
  '\u007f',
  '\u0085',
  '\u009f',
  '\ud800',
])('%j is malformed', (text) => {
  expect(isMalformed(`a${text}b`)).toBe(true)
})

test.each(['', '\t', '\n', '\r\n', '\u2028', '\u200d', '\u{1f600}'])(
  '%j is well-formed',
  (text) => {
    expect(isMalformed(`a${text}b`)).toBe(false)
  },
)
