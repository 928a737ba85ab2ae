import { useEffect, useRef } from 'preact/hooks'

const name = 'found'
const word = /[\p{L}\p{N}\p{M}]+/gu

/** As the search compares words. */
const folded = (text: string) => text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase()

/** Marks the words of a search in the texts below an element, and scrolls once to the newest of them.
 *  @param content changes with the texts */
export function useFoundWords(
  element: { current: HTMLElement | null },
  q: string,
  content: string,
) {
  const shown = useRef('')
  useEffect(() => {
    if (!element.current || q === '' || !('highlights' in CSS)) return
    const ranges = rangesOf(element.current, q)
    CSS.highlights.set(name, new Highlight(...ranges))
    if (shown.current !== q)
      ranges.at(-1)?.startContainer.parentElement?.scrollIntoView({ block: 'nearest' })
    shown.current = q
    return () => void CSS.highlights.delete(name)
  }, [q, content])
}

function rangesOf(element: HTMLElement, q: string): Range[] {
  const wanted = (q.match(word) ?? []).map(folded)
  const beginning = wanted.at(-1) ?? ''
  const isFound = (text: string) =>
    wanted.includes(text) || (beginning.length > 1 && text.startsWith(beginning))
  return [...textsIn(element)].flatMap((node) =>
    [...node.data.matchAll(word)]
      .filter(([text]) => isFound(folded(text)))
      .map(({ 0: text, index }) => {
        const range = new Range()
        range.setStart(node, index)
        range.setEnd(node, index + text.length)
        return range
      }),
  )
}

function* textsIn(element: HTMLElement): Iterable<Text> {
  for (const prose of element.querySelectorAll('.prose')) {
    const walker = document.createTreeWalker(prose, NodeFilter.SHOW_TEXT)
    for (let node = walker.nextNode(); node instanceof Text; node = walker.nextNode()) yield node
  }
}
