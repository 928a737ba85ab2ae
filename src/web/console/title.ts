import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

/** Part of the document title: the open item of the area. */
export const openTitle = signal<string | undefined>(undefined)

/** Sets the document title while the component is mounted. */
export function useTitle(title: string | undefined): void {
  useEffect(() => {
    openTitle.value = title
    return () => {
      openTitle.value = undefined
    }
  }, [title])
}
