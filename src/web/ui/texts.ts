import { signal } from '@preact/signals'

/** Texts of the shared components. A page in another language sets its own before it renders. */
export const english = {
  retry: 'Try again',
  close: 'Close',
  cancel: 'Cancel',
  loading: 'Loading…',
  offlineTitle: 'No connection',
  offline: 'The service cannot be reached.',
  limitedTitle: 'Too many requests',
  limited: 'Try again in {seconds} s.',
  ended: 'Your session has ended.',
  failedTitle: 'That did not work',
  requestId: 'Request {id}',
  live: 'Live',
  connecting: 'Connecting…',
  offlineShort: 'Offline',
  shortcuts: 'Keyboard shortcuts',
  theme: 'Appearance',
  themes: { auto: 'Like the system', light: 'Light', dark: 'Dark' },
  locale: 'en',
}

export type UiTexts = typeof english
export const uiTexts = signal<UiTexts>(english)

export function fill(text: string, values: Record<string, string | number>): string {
  return text.replace(/{(\w+)}/g, (_, name) => String(values[name] ?? ''))
}
