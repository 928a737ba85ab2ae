import { render } from 'preact'
import { followLinks } from '../ui/router.ts'
import { Demo } from './demo.tsx'

followLinks('/demo')
render(<Demo />, document.getElementById('app') ?? document.body)
