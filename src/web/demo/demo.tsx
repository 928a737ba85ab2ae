import { Dialogs } from '../ui/dialog.tsx'
import { count } from '../ui/format.ts'
import { navigate } from '../ui/router.ts'
import { useShortcut } from '../ui/shortcuts.tsx'
import { ThemeSelect } from '../ui/theme.tsx'
import { Toasts } from '../ui/toast.tsx'
import { LanguageSelect, texts } from './language.tsx'
import { Panel } from './panel.tsx'
import { linkToSide, shownSide } from './place.ts'
import { type Side, sessions, sides } from './session.ts'

export function Demo() {
  const { keys } = texts.value
  useShortcut('1', keys.left, () => focusSide('left'))
  useShortcut('2', keys.right, () => focusSide('right'))
  return (
    <div class="demo">
      <Head />
      <SideSwitch />
      <main class={`panels shows-${shownSide.value}`}>
        {sides.map((side) => (
          <Panel key={side} session={sessions[side].value} />
        ))}
      </main>
      <Dialogs />
      <Toasts />
    </div>
  )
}

function Head() {
  const { heading, intro, links } = texts.value
  return (
    <header class="head">
      <div class="about">
        <h1>{heading}</h1>
        <p class="soft small">
          {intro} <code>src/web/demo</code>
        </p>
      </div>
      <nav class="row" aria-label={links.label}>
        <a href="/docs">{links.docs}</a>
        <a href="/console">{links.console}</a>
      </nav>
      <div class="row choices">
        <LanguageSelect />
        <ThemeSelect />
      </div>
    </header>
  )
}

/** On a phone only one person is visible. */
function SideSwitch() {
  const text = texts.value
  return (
    <nav class="segments side-switch" aria-label={text.people}>
      {sides.map((side) => (
        <SideLink key={side} side={side} />
      ))}
    </nav>
  )
}

function SideLink({ side }: { side: Side }) {
  const { user, unreadCount } = sessions[side].value
  const isShown = side === shownSide.value
  return (
    <a href={linkToSide(side)} aria-current={isShown ? 'true' : undefined}>
      <span class="row">
        <span class="truncate">{user.value?.display_name ?? texts.value.sides[side]}</span>
        {!isShown && unreadCount.value > 0 && (
          <span class="badge accent number">
            {count(unreadCount.value)}
            <span class="visually-hidden"> {texts.value.unread}</span>
          </span>
        )}
      </span>
    </a>
  )
}

function focusSide(side: Side) {
  navigate(linkToSide(side), 'replace')
  // On a phone the panel has to become visible first.
  requestAnimationFrame(() => document.querySelector<HTMLElement>(`.panel.${side}`)?.focus())
}
