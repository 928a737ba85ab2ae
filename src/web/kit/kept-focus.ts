/** What knows a better place for the focus moves it there within this time. */
const settleMilliseconds = 150

/** Keeps the focus in its part of the page: when the focused element is removed, and nothing else takes the focus, the nearest
 *  element around it does. */
export function keepFocus(): void {
  let focused: Element | undefined
  let around: HTMLElement[] = []

  document.addEventListener('focusin', ({ target }) => {
    if (!(target instanceof Element)) return
    focused = target
    around = []
    for (let part = target.parentElement; part; part = part.parentElement)
      if (part.matches('[tabindex]')) around.push(part)
  })
  const observer = new MutationObserver(() => {
    if (!focused || focused.isConnected) return
    focused = undefined
    setTimeout(() => {
      if (document.activeElement !== document.body) return
      around.find(({ isConnected }) => isConnected)?.focus({ preventScroll: true })
    }, settleMilliseconds)
  })
  observer.observe(document.body, { childList: true, subtree: true })
}
