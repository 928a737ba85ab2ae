import { Bug, CircleAlert, CloudOff, Hourglass } from 'lucide-preact'
import { Component, type ComponentChildren, type ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { ApiError } from '../../../client/src/errors.ts'
import { errorText, isOfNetwork } from './errors.ts'
import { duration } from './format.ts'
import { fill, texts } from './texts.tsx'
import { toast } from './toast.tsx'

type EmptyProps = {
  icon: ComponentType
  title: string
  text?: string
  children?: ComponentChildren
}

/** An empty list with a text about what would be in it. */
export function Empty({ icon: Icon, title, text, children }: EmptyProps) {
  return (
    <div class="state">
      <Icon />
      <h2>{title}</h2>
      {text && <p>{text}</p>}
      {children}
    </div>
  )
}

export function Loading({ rows = 4 }: { rows?: number }) {
  return (
    <div class="stack" role="status" style={{ padding: 'var(--space-4)' }}>
      <span class="visually-hidden">{texts.kit.loading}</span>
      {Array.from({ length: rows }, (_, row) => (
        <span class="skeleton" style={{ width: `${92 - ((row * 17) % 40)}%` }} />
      ))}
    </div>
  )
}

/** An error with a retry button. When the service has named a time, it retries by itself. */
export function Failure({ error, retry }: { error: unknown; retry: () => void }) {
  const { title, text, requestId, retryAfterSeconds } = errorText(error)
  const left = useCountdown(error, retryAfterSeconds, retry)
  const Icon = iconOf(error)
  const isLimited = left !== undefined && error instanceof ApiError
  return (
    <div class="state">
      <Icon />
      {/* Without the seconds: a screen reader would read each of them. */}
      <div role="alert">
        <h2>{title}</h2>
      </div>
      <p>{isLimited ? fill(texts.kit.limited, { duration: duration(left) }) : text}</p>
      {requestId && <p class="small mono">{fill(texts.kit.requestId, { id: requestId })}</p>}
      <button type="button" class="button" onClick={retry}>
        {texts.kit.retry}
      </button>
    </div>
  )
}

function iconOf(error: unknown) {
  if (isOfNetwork(error)) return CloudOff
  const isLimited = error instanceof ApiError && error.code === 'rate_limited'
  return isLimited ? Hourglass : CircleAlert
}

/** @returns the seconds left; undefined when no time was given */
function useCountdown(
  error: unknown,
  seconds: number | undefined,
  atEnd: () => void,
): number | undefined {
  const [left, setLeft] = useState(seconds)
  useEffect(() => setLeft(seconds), [seconds, error])
  useEffect(() => {
    if (left === undefined) return
    const timer = setTimeout(left > 1 ? () => setLeft(left - 1) : atEnd, 1_000)
    return () => clearTimeout(timer)
  }, [left, atEnd])
  return left
}

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
