import { signal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { openDialog } from './dialog.tsx'
import { CheckBox, isComposing } from './field.tsx'
import { texts } from './texts.tsx'

type Shortcut = { keys: string; label: string; work: () => void }

const storageKey = 'hostline shortcuts'
/** Keys without Ctrl or Alt get in the way of speech input and screen readers (WCAG 2.1.4). */
export const hasShortcuts = signal(localStorage.getItem(storageKey) !== 'off')
hasShortcuts.subscribe((isOn) => {
  if (isOn) localStorage.removeItem(storageKey)
  else localStorage.setItem(storageKey, 'off')
})

const sequenceMilliseconds = 1_000
const active = signal<Shortcut[]>([])
let typed = ''
let typedAt = 0
let isHelpOpen = false

export const ShortcutsSwitch = () => (
  <CheckBox
    label={texts.kit.singleKeys}
    isOn={hasShortcuts.value}
    change={(isOn) => {
      hasShortcuts.value = isOn
    }}
  />
)

/** Binds keys while the component is mounted. They are ignored while the user types, and `?` lists them.
 *  @param keys one key, or two in a row: `g t`; the last binding wins */
export function useShortcut(keys: string, label: string, work: () => void): void {
  const latest = useRef(work)
  latest.current = work
  // Effects may run a tenth of a second later, and a key pressed until then would be lost.
  useLayoutEffect(() => {
    const shortcut = { keys, label, work: () => latest.current() }
    active.value = [...active.value, shortcut]
    return () => {
      active.value = active.value.filter((other) => other !== shortcut)
    }
  }, [keys, label])
}

addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isComposing(event)) return
  if (event.defaultPrevented || (!hasShortcuts.value && event.key.length === 1)) return
  // A held key goes on through rows, and does nothing else again.
  if (event.repeat && event.key !== 'j' && event.key !== 'k') return
  // A dialog or a menu has its own keys.
  if (isTyping(event.target) || document.querySelector('dialog[open], [popover=auto]:popover-open'))
    return
  if (event.key === '?') return void showShortcuts()
  const isSequence = event.timeStamp - typedAt < sequenceMilliseconds
  const candidates = isSequence ? [`${typed} ${event.key}`, event.key] : [event.key]
  typed = event.key
  typedAt = event.timeStamp
  const found = candidates
    .map((keys) => active.value.findLast((shortcut) => shortcut.keys === keys))
    .find((shortcut) => shortcut !== undefined)
  if (!found) return
  event.preventDefault()
  typed = ''
  found.work()
})

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  const takesText = target.matches('input:not([type=checkbox], [type=radio]), textarea, select')
  return takesText || target.isContentEditable
}

function keysByLabel(): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const { keys, label } of active.value) found.set(label, [...(found.get(label) ?? []), keys])
  return found
}

export async function showShortcuts(): Promise<void> {
  if (isHelpOpen) return
  isHelpOpen = true
  await openDialog((close) => (
    <div class="stack">
      {/* The heading takes the focus, so that a long list is read from its beginning. */}
      <h2 tabIndex={-1}>{texts.kit.shortcuts}</h2>
      <dl class="shortcuts">
        {[...keysByLabel()].map(([label, all]) => (
          <div class="row between" key={label}>
            <dt>{label}</dt>
            <dd class="row">
              {all.map((keys) =>
                keys.split(' ').map((key) => <kbd key={`${keys} ${key}`}>{key}</kbd>),
              )}
            </dd>
          </div>
        ))}
      </dl>
      <div class="small">
        <ShortcutsSwitch />
      </div>
      <div class="actions">
        <button type="button" class="button" onClick={() => close()}>
          {texts.kit.close}
        </button>
      </div>
    </div>
  ))
  isHelpOpen = false
}
