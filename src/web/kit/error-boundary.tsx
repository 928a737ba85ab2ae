import { Bug } from 'lucide-preact'
import { Component, type ComponentChildren } from 'preact'
import { texts } from './texts.tsx'
import { toast } from './toast.tsx'

type BoundaryProps = {
  /** A change of it, such as another page, shows the children again. */
  place: string
  children: ComponentChildren
}
type BoundaryState = { failedAt?: string | undefined }

/** Shows our own mistakes as such, in place of an empty page. */
export class ErrorBoundary extends Component<BoundaryProps, BoundaryState> {
  override state: BoundaryState = {}

  override componentDidCatch(error: unknown) {
    reportError(error)
    this.setState({ failedAt: this.props.place })
  }

  override render() {
    if (this.state.failedAt !== this.props.place) return this.props.children
    return (
      <div class="state" role="alert">
        <Bug />
        <h2>{texts.kit.faultTitle}</h2>
        <p>{texts.kit.faultText}</p>
        <button type="button" class="button" onClick={() => location.reload()}>
          {texts.kit.reloadPage}
        </button>
      </div>
    )
  }
}

/** Says that a handler has failed, which would otherwise look as if nothing had happened. */
export function watchForFaults(): void {
  const say = () => toast(texts.kit.fault)
  addEventListener('error', (event) => event.error && say())
  addEventListener('unhandledrejection', say)
}
