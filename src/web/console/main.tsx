import { render } from 'preact'
import { Dialogs } from '../ui/dialog.tsx'
import { followLinks } from '../ui/router.ts'
import { Toasts } from '../ui/toast.tsx'
import { RequiredFactor } from './account/required-factor.tsx'
import { LoginPage } from './login.tsx'
import { needsFactor, user } from './session.ts'
import { Shell } from './shell.tsx'

function App() {
  return (
    <>
      <Screen />
      <Dialogs />
      <Toasts />
    </>
  )
}

function Screen() {
  if (!user.value) return <LoginPage />
  return needsFactor.value ? <RequiredFactor /> : <Shell />
}

followLinks('/console')
render(<App />, document.getElementById('app') ?? document.body)
