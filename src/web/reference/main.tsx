import { render } from 'preact'

render(<h1>Reference</h1>, document.getElementById('app') ?? document.body)
