import { Download, Paperclip } from 'lucide-preact'
import { bytes } from './format.ts'

type StoredFile = {
  file_url: string | null
  file_name: string | null
  file_size: number | null
  file_type: string | null
}

/** An uploaded file. Images are displayed only from this service: another host would learn who looks. */
export function FileLink({ file }: { file: StoredFile }) {
  const { file_url: url, file_name, file_size: size, file_type: type } = file
  if (url === null) return null
  const own = ownPath(url)
  const name = file_name ?? 'file'
  if (own && type?.startsWith('image/')) {
    return (
      <a class="picture" href={own} target="_blank" rel="noreferrer">
        <img src={own} alt={name} loading="lazy" />
      </a>
    )
  }
  return (
    <a class="file" href={own ?? url} target="_blank" rel="noreferrer">
      {own ? <Paperclip /> : <Download />}
      <span class="truncate">{name}</span>
      {size !== null && <span class="soft small">{bytes(size)}</span>}
    </a>
  )
}

// The service may be reached by a name other than its public one.
function ownPath(url: string): string | undefined {
  const { pathname, search } = new URL(url)
  return /^\/v1\/files\/[^/]+\/[^/]+$/.test(pathname) ? pathname + search : undefined
}
