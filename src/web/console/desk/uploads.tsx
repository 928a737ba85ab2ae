import { FileWarning, Paperclip, RotateCw, X } from 'lucide-preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { uniqueId } from '../../../../client/src/platform.ts'
import { errorText } from '../../ui/errors.ts'
import { bytes } from '../../ui/format.ts'
import { toast } from '../../ui/toast.tsx'
import { client } from '../session.ts'
import type { StoredFile } from './draft.ts'

export const maxFiles = 5

type Upload = {
  id: string
  file: File
  sent: number
  problem?: string | undefined
  abort: AbortController
}

/** Uploads in progress.
 *  @param room how many more files may be added
 *  @param add called with each stored file */
export function useUploads(room: number, add: (stored: StoredFile) => void) {
  const [uploads, setUploads] = useState<Upload[]>([])
  const latest = useRef({ add, uploads })
  latest.current = { add, uploads }
  useEffect(
    () => () => {
      for (const { abort } of latest.current.uploads) abort.abort()
    },
    [],
  )

  const patch = (id: string, change: Partial<Upload>) =>
    setUploads((before) => before.map((one) => (one.id === id ? { ...one, ...change } : one)))
  const drop = (id: string) => setUploads((before) => before.filter((one) => one.id !== id))

  async function send({ id, file, abort: { signal } }: Upload) {
    patch(id, { problem: undefined, sent: 0 })
    try {
      const onProgress = (sent: number) => patch(id, { sent })
      const stored = await client.files.upload(file, { onProgress, signal })
      if (signal.aborted) return
      drop(id)
      latest.current.add(stored)
    } catch (error) {
      if (!signal.aborted) patch(id, { problem: errorText(error).text })
    }
  }

  function start(files: File[]) {
    const free = Math.max(0, room - uploads.length)
    if (files.length > free) toast(`A message takes up to ${maxFiles} files.`)
    const added = files.slice(0, free).map((file) => ({
      id: uniqueId(),
      file,
      sent: 0,
      abort: new AbortController(),
    }))
    setUploads((before) => [...before, ...added])
    for (const upload of added) void send(upload)
  }

  function remove({ id, abort }: Upload) {
    abort.abort()
    drop(id)
  }

  return { uploads, start, remove, retry: send }
}

type AttachedProps = {
  files: StoredFile[]
  removeFile: (file: StoredFile) => void
  sending: ReturnType<typeof useUploads>
}

/** Attached files and uploads in progress. */
export function Attached({ files, removeFile, sending }: AttachedProps) {
  if (files.length + sending.uploads.length === 0) return null
  return (
    <ul class="attached" aria-label="Attachments">
      {files.map((file) => (
        <li key={file.id} class="file">
          <Paperclip />
          <span class="truncate">{file.file_name}</span>
          <span class="soft small">{bytes(file.file_size)}</span>
          <RemoveButton name={file.file_name} remove={() => removeFile(file)} />
        </li>
      ))}
      {sending.uploads.map((upload) => (
        <UploadView key={upload.id} upload={upload} sending={sending} />
      ))}
    </ul>
  )
}

type UploadViewProps = { upload: Upload; sending: ReturnType<typeof useUploads> }

function UploadView({ upload, sending }: UploadViewProps) {
  const { file, sent, problem } = upload
  return (
    <li class="file">
      {problem === undefined ? <Paperclip /> : <FileWarning />}
      <span class="truncate">{file.name}</span>
      {problem === undefined ? (
        <progress
          aria-label={`${file.name} on its way`}
          max={Math.max(file.size, 1)}
          value={sent}
        />
      ) : (
        <>
          <span class="error truncate" role="alert" title={problem}>
            {problem}
          </span>
          <button
            type="button"
            class="button ghost icon"
            aria-label={`Send ${file.name} again`}
            onClick={() => sending.retry(upload)}
          >
            <RotateCw />
          </button>
        </>
      )}
      <RemoveButton name={file.name} remove={() => sending.remove(upload)} />
    </li>
  )
}

function RemoveButton({ name, remove }: { name: string; remove: () => void }) {
  return (
    <button type="button" class="button ghost icon" aria-label={`Remove ${name}`} onClick={remove}>
      <X />
    </button>
  )
}
