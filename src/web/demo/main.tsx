import { render } from 'preact'
import { watchForFaults } from '../kit/error-boundary.tsx'
import { followLinks } from '../kit/router.ts'
import { language, loadTexts } from '../kit/texts.tsx'
import { Demo } from './demo.tsx'
import { texts } from './language.tsx'

const platform = document.title

followLinks('/demo')
watchForFaults()
void loadTexts().then(() => render(<Page />, document.getElementById('app') ?? document.body))

function Page() {
  document.title = `${texts.value.title} · ${platform}`
  // Another language renders everything again.
  return <Demo key={language.value} />
}
