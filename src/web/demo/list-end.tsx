import { Failure, Loading } from '../ui/states.tsx'
import { say } from './language.tsx'
import type { LiveList } from './lists.ts'

/** Below the rows: that they are loading, what failed, or a way to more of them. */
export function ListEnd({ list }: { list: LiveList }) {
  const { isLoaded, error, hasMore, loadMore, retry } = list
  if (error.value !== undefined) return <Failure error={error.value} retry={retry} />
  if (!isLoaded.value) return <Loading />
  if (!hasMore.value) return null
  return (
    <button type="button" class="button ghost more" onClick={loadMore}>
      {say.value.more}
    </button>
  )
}
