import type { ListState } from '../../../client/src/state.ts'
import { Button } from '../kit/button.tsx'
import { Failure, Loading } from '../kit/states.tsx'
import { texts } from './language.tsx'

type Listed = ListState<unknown> & Record<'reload' | 'loadMore', () => Promise<void>>

/** The end of a list: loading, an error, or a button for more. */
export function ListEnd({ list }: { list: Listed }) {
  const { status, error, hasMore, isLoadingMore, loadMore, reload } = list
  if (status === 'failed') return <Failure error={error} retry={reload} />
  if (status === 'loading') return <Loading />
  if (!hasMore) return null
  return (
    <Button tone="ghost" class="more" disabled={isLoadingMore} onClick={loadMore}>
      {texts.value.more}
    </Button>
  )
}
