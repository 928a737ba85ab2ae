import { Play } from 'lucide-preact'
import { render } from 'preact'
import { ActionButton } from '../kit/button.tsx'
import { Dialogs } from '../kit/dialog.tsx'
import { keepFocus } from '../kit/kept-focus.ts'
import { followLinks, navigate, path } from '../kit/router.ts'
import { Select } from '../kit/select.tsx'
import { useShortcut } from '../kit/shortcuts.tsx'
import { ErrorBoundary, watchForFaults } from '../kit/states.tsx'
import { language, languages, loadTexts, speak, texts } from '../kit/texts.tsx'
import { ThemeSelect } from '../kit/theme.tsx'
import { Toasts, toastError } from '../kit/toast.tsx'
import { Entrance } from './entrance.tsx'
import { Home } from './home.tsx'
import { UnreadBadge } from './lists.tsx'
import { linkToSide, shownSide } from './place.ts'
import { type Session, type Side, sessions, sides, startWithTwo } from './session.ts'

const platform = document.title

followLinks('/demo')
watchForFaults()
keepFocus()
void loadTexts().then(() => render(<Page />, document.getElementById('app') ?? document.body))

function Page() {
  document.title = `${texts.demo.title} · ${platform}`
  // Another language renders everything again.
  return <Demo key={language.value} />
}

function Demo() {
  const { keys } = texts.demo
  useShortcut('1', keys.left, () => focusSide('left'))
  useShortcut('2', keys.right, () => focusSide('right'))
  return (
    <div class="demo">
      <Head />
      <SideSwitch />
      <main class={`panels shows-${shownSide.value}`}>
        {sides.map((side) => (
          <Panel key={side} session={sessions[side]} />
        ))}
      </main>
      <Dialogs />
      <Toasts />
    </div>
  )
}

function Head() {
  const { heading, intro, links } = texts.demo
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
      <div class="row menus">
        <Select
          label={texts.fields.lang}
          value={language.value}
          options={languages}
          choose={(chosen) => void speak(chosen).catch(toastError)}
        />
        <ThemeSelect />
      </div>
      <Start />
    </header>
  )
}

/** One button while nobody is logged in. */
function Start() {
  const { text, action } = texts.demo.start
  if (sides.some((side) => sessions[side].user.value)) return null
  return (
    <div class="start row wrap">
      <ActionButton tone="primary" icon={Play} texts={{ button: action }} work={startWithTwo} />
      <p class="soft small">{text}</p>
    </div>
  )
}

/** On a phone only one person is visible. */
function SideSwitch() {
  return (
    <nav class="segments side-switch" aria-label={texts.console.areas.people}>
      {sides.map((side) => (
        <SideLink key={side} side={side} />
      ))}
    </nav>
  )
}

function SideLink({ side }: { side: Side }) {
  const { user, unreadCount } = sessions[side]
  const isShown = side === shownSide.value
  return (
    <a href={linkToSide(side)} aria-current={isShown ? 'true' : undefined}>
      <span class="row">
        <span class="truncate">{user.value?.display_name ?? texts.demo.sides[side]}</span>
        {!isShown && <UnreadBadge unread={unreadCount.value} />}
      </span>
    </a>
  )
}

function focusSide(side: Side) {
  navigate(linkToSide(side), 'replace')
  // On a phone the panel has to become visible first.
  requestAnimationFrame(() => document.querySelector<HTMLElement>(`.panel.${side}`)?.focus())
}

function Panel({ session }: { session: Session }) {
  const { side } = session
  const user = session.user.value
  const name = texts.demo.sides[side]
  return (
    <section
      class={`panel ${side}`}
      tabIndex={-1}
      aria-label={user ? `${name}: ${user.display_name}` : name}
    >
      <ErrorBoundary place={path.value}>
        {user ? (
          // A new person must not see what the previous one has loaded.
          <Home key={user.id} session={session} user={user} />
        ) : (
          <Entrance session={session} />
        )}
      </ErrorBoundary>
    </section>
  )
}
