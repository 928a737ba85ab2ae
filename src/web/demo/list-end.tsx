import { Failure, Loading } from '../ui/states.tsx'
import { texts } from './language.tsx'
import type { LiveList } from './lists.ts'

/** The end of a list: loading, an error, or a button for more. */
export function ListEnd({ list }: { list: LiveList }) {
  const { isLoaded, error, hasMore, loadMore, retry } = list
  if (error.value !== undefined) return <Failure error={error.value} retry={retry} />
  if (!isLoaded.value) return <Loading />
  if (!hasMore.value) return null
  return (
    <button type="button" class="button ghost more" onClick={loadMore}>
      {texts.value.more}
    </button>
  )
}
