import { render } from 'preact'
import { Dialogs } from '../ui/dialog.tsx'
import { followLinks } from '../ui/router.ts'
import { Toasts } from '../ui/toast.tsx'
import { ReferencePage } from './reference-page.tsx'

followLinks('/docs')
render(
  <>
    <ReferencePage />
    <Dialogs />
    <Toasts />
  </>,
  document.getElementById('app') ?? document.body,
)
