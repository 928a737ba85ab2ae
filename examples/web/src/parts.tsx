import { ApiError, createClient, webStorage } from 'hostline-client'
import type { ReactNode } from 'react'

/** Keeps the session and unsent messages in the browser, for all tabs. */
export const client = createClient({ baseUrl: location.origin, storage: webStorage(localStorage) })

/** A refusal, in the language of the browser. */
export function messageOf(error: unknown): string {
  if (error instanceof ApiError) return Object.values(error.details ?? [error.message]).join(' ')
  return 'The service cannot be reached.'
}

export const showError = (error: unknown) => alert(messageOf(error))
/** For errors that are shown by the outbox. */
export const ignore = () => {}

type ButtonProps = { act: () => unknown; isOn?: boolean; children: ReactNode }

export const Button = ({ act, isOn, children }: ButtonProps) => (
  <button type="button" aria-pressed={isOn} onClick={() => void act()}>
    {children}
  </button>
)

type LineProps = { isOwn: boolean; text?: string; children?: ReactNode }

export const Line = ({ isOwn, text, children }: LineProps) => (
  <li className={isOwn ? 'own' : ''}>{children ?? text}</li>
)

type MoreProps = { list: { hasMore: boolean; status: string; error: unknown }; load: () => unknown }

export function More({ list, load }: MoreProps) {
  if (list.status === 'failed') return <p role="alert">{messageOf(list.error)}</p>
  return list.hasMore && <Button act={load}>More</Button>
}
