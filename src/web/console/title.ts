import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

/** What is open in the area, for the title of the window. */
export const openTitle = signal<string | undefined>(undefined)

/** Names the window after what is open, as long as it is. */
export function useTitle(title: string | undefined): void {
  useEffect(() => {
    openTitle.value = title
    return () => {
      openTitle.value = undefined
    }
  }, [title])
}
