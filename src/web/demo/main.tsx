import { render } from 'preact'

render(<h1>Demo</h1>, document.getElementById('app') ?? document.body)
