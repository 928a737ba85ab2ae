import { Download, Paperclip } from 'lucide-preact'
import { thumbHashToDataURL } from 'thumbhash'
import { ownFile, thumbnail } from './avatar.tsx'
import { bytes } from './format.ts'
import { texts } from './texts.tsx'

type StoredFile = {
  file_url: string | null
  file_name: string | null
  file_size: number | null
  file_type: string | null
  width?: number | undefined
  height?: number | undefined
  placeholder?: string | undefined
}

export function MessageFiles({
  message,
}: {
  message: StoredFile & { attachments?: StoredFile[] }
}) {
  const { attachments = [message] } = message
  return attachments.map((file) => <FileLink key={file.file_url} file={file} />)
}

/** An uploaded file. Images are displayed only from this service: another host would learn who looks. */
export function FileLink({ file }: { file: StoredFile }) {
  const { file_url: url, file_name, file_size: size, file_type: type } = file
  if (url === null) return null
  const own = ownFile(url)
  const name = file_name ?? texts.kit.file
  if (own && type?.startsWith('image/')) {
    return (
      <a class="picture" href={own} target="_blank" rel="noreferrer">
        <img src={own} alt={name} loading="lazy" {...pictureProps(own, file)} />
      </a>
    )
  }
  return (
    <a class="file" href={own ?? url} target="_blank" rel="noreferrer">
      {own ? <Paperclip /> : <Download />}
      <span class="truncate" dir="auto">
        {name}
      </span>
      {size !== null && <span class="soft small">{bytes(size)}</span>}
    </a>
  )
}

const maxHeight = 256
const thumbnailWidth = 640

/** The size of an image before it is loaded, so that nothing around it moves, and its placeholder. */
function pictureProps(own: string, { width, height, placeholder }: StoredFile) {
  if (width === undefined || height === undefined || placeholder === undefined) return {}
  const scale = Math.min(1, maxHeight / height)
  const hash = Uint8Array.from(atob(placeholder), (character) => character.charCodeAt(0))
  return {
    src: thumbnail(own, thumbnailWidth),
    width: Math.round(width * scale),
    height: Math.round(height * scale),
    style: { height: 'auto', background: `center / cover url(${thumbHashToDataURL(hash)})` },
  }
}
