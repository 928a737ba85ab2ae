/** Code that knows a better place for the focus usually moves it there within this time. */
const settleMilliseconds = 150
let fallback: HTMLElement | undefined

/** Whether nothing has the focus, or only what took it because nothing else did. */
export const isFocusLost = (): boolean =>
  document.activeElement === document.body || document.activeElement === fallback

/** Keeps the focus in its part of the page: when the focused element is removed, and nothing else takes the focus, the nearest
 *  element around it does, or else the main part of the page. */
export function keepFocus(): void {
  let focused: Element | undefined
  let around: HTMLElement[] = []

  document.addEventListener('focusin', ({ target }) => {
    if (!(target instanceof Element)) return
    focused = target
    // A modal dialog gives the focus back.
    if (target !== fallback && !target.closest('dialog')) fallback = undefined
    around = []
    for (let part = target.parentElement; part; part = part.parentElement)
      if (part.matches('[tabindex]')) around.push(part)
  })
  const observer = new MutationObserver(() => {
    if (!focused || focused.isConnected) return
    focused = undefined
    setTimeout(() => {
      if (document.activeElement !== document.body) return
      const main = document.querySelector<HTMLElement>('main[tabindex]')
      fallback = around.find(({ isConnected }) => isConnected) ?? main ?? undefined
      fallback?.focus({ preventScroll: true })
    }, settleMilliseconds)
  })
  observer.observe(document.body, { childList: true, subtree: true })
}
