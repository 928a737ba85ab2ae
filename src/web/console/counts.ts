import { signal } from '@preact/signals'

/** Tickets by view, and open reports; undefined until the service has said. */
export const deskCounts = signal<{ waiting: number } | undefined>(undefined)
export const openReports = signal<number | undefined>(undefined)
