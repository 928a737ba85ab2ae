import { render } from 'preact'
import { Dialogs } from '../kit/dialog.tsx'
import { keepFocus } from '../kit/kept-focus.ts'
import { lazy } from '../kit/lazy.tsx'
import { followLinks, path } from '../kit/router.ts'
import { ErrorBoundary, watchForFaults } from '../kit/states.tsx'
import { loadTexts } from '../kit/texts.tsx'
import { Toasts } from '../kit/toast.tsx'
import { LoginPage } from './login.tsx'
import { needsFactor, user } from './session.ts'
import { Shell } from './shell.tsx'

const RequiredFactor = lazy(
  async () => (await import('./account/second-factor.tsx')).RequiredFactor,
)

function App() {
  return (
    <>
      <ErrorBoundary place={path.value}>
        <Screen />
      </ErrorBoundary>
      <Dialogs />
      <Toasts />
    </>
  )
}

function Screen() {
  if (user.value?.role !== 'admin') return <LoginPage />
  return needsFactor.value ? <RequiredFactor /> : <Shell />
}

followLinks('/console')
watchForFaults()
keepFocus()
void loadTexts().then(() => render(<App />, document.getElementById('app') ?? document.body))
