import { render } from 'preact'
import { Dialogs } from '../ui/dialog.tsx'
import { followLinks } from '../ui/router.ts'
import { Toasts } from '../ui/toast.tsx'
import { LoginPage } from './login.tsx'
import { user } from './session.ts'
import { Shell } from './shell.tsx'

function App() {
  return (
    <>
      {user.value ? <Shell /> : <LoginPage />}
      <Dialogs />
      <Toasts />
    </>
  )
}

followLinks('/console')
render(<App />, document.getElementById('app') ?? document.body)
