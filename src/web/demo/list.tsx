import type { ComponentChildren, ComponentType } from 'preact'
import type { ListState } from '../../../client/src/state.ts'
import { Button } from '../kit/button.tsx'
import { Empty, Failure, Loading } from '../kit/states.tsx'
import { texts } from '../kit/texts.tsx'

type ListProps<T> = {
  label: string
  list: ListState<T> & Record<'reload' | 'loadMore', () => Promise<void>>
  icon: ComponentType
  /** For an empty list. */
  words: { none: string; noneText: string }
  render: (item: T) => ComponentChildren
}

/** The rows of a list, and at its end: loading, an error, or a button for more. */
export function List<T extends { id: string }>({ label, list, icon, words, render }: ListProps<T>) {
  const { items, status, error, hasMore, isLoadingMore, loadMore, reload } = list
  return (
    <>
      {status === 'ready' && items.length === 0 && (
        <Empty icon={icon} title={words.none} text={words.noneText} />
      )}
      <ul class="rows" aria-label={label}>
        {items.map((item) => (
          <li key={item.id}>{render(item)}</li>
        ))}
      </ul>
      {status === 'failed' && <Failure error={error} retry={reload} />}
      {status === 'loading' && <Loading />}
      {status === 'ready' && hasMore && (
        <Button tone="ghost" class="more" disabled={isLoadingMore} onClick={loadMore}>
          {texts.kit.showMore}
        </Button>
      )}
    </>
  )
}
