import { FileWarning, Paperclip, RotateCw, X } from 'lucide-preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Client, UploadedFile } from '../../../client/src/client.ts'
import { uniqueId } from '../../../client/src/platform.ts'
import { Button, IconButton, useAction, useIsShown } from './button.tsx'
import { errorText } from './errors.ts'
import { bytes, plural } from './format.ts'
import { fill, texts } from './texts.tsx'
import { toast, toastError } from './toast.tsx'

export const maxFiles = 5

type Upload = {
  id: string
  file: File
  sent: number
  problem?: string | undefined
  abort: AbortController
}
type UploadOptions = {
  send: Client['files']['upload']
  /** How many more files may be added. */
  room: number
  /** Called with each stored file. */
  add: (stored: UploadedFile) => void
  /** Uploads end, and files are added, also after the component is gone. */
  goesOn?: boolean
}

export function useUploads({ send, room, add, goesOn = false }: UploadOptions) {
  const [uploads, setUploads] = useState<Upload[]>([])
  const latest = useRef({ add, uploads })
  latest.current = { add, uploads }
  const isShown = useIsShown()
  useEffect(
    () => () => {
      if (!goesOn) for (const { abort } of latest.current.uploads) abort.abort()
    },
    [],
  )

  const patch = (id: string, change: Partial<Upload>) =>
    setUploads((before) => before.map((one) => (one.id === id ? { ...one, ...change } : one)))
  const drop = (id: string) => setUploads((before) => before.filter((one) => one.id !== id))

  async function start({ id, file, abort: { signal } }: Upload) {
    patch(id, { problem: undefined, sent: 0 })
    try {
      const onProgress = (sent: number) => patch(id, { sent })
      const stored = await send(file, { onProgress, signal })
      if (signal.aborted) return
      drop(id)
      latest.current.add(stored)
    } catch (error) {
      if (signal.aborted) return
      patch(id, { problem: errorText(error).text })
      if (!isShown.current) toastError(error)
    }
  }

  function take(files: File[]) {
    const free = Math.max(0, room - uploads.length)
    if (files.length > free) toast(plural(texts.kit.mostFiles, maxFiles))
    const added = files
      .slice(0, free)
      .map((file) => ({ id: uniqueId(), file, sent: 0, abort: new AbortController() }))
    setUploads((before) => [...before, ...added])
    for (const upload of added) void start(upload)
  }

  function remove({ id, abort }: Upload) {
    abort.abort()
    drop(id)
  }

  return { uploads, take, remove, retry: start }
}

type Shown = Pick<UploadedFile, 'id' | 'file_name' | 'file_size'>
type AttachedProps<T extends Shown> = {
  files: T[]
  removeFile: (file: T) => void
  sending?: ReturnType<typeof useUploads>
}

/** Attached files and uploads in progress. */
export function Attached<T extends Shown>({ files, removeFile, sending }: AttachedProps<T>) {
  const list = useRef<HTMLUListElement>(null)
  if (files.length + (sending?.uploads.length ?? 0) === 0) return null
  return (
    <ul class="attached" aria-label={texts.kit.attachments} ref={list}>
      {files.map((file) => (
        <li key={file.id} class="file">
          <Paperclip />
          <span class="truncate">{file.file_name}</span>
          <span class="soft small">{bytes(file.file_size)}</span>
          <IconButton
            icon={X}
            label={fill(texts.kit.removeFile, { name: file.file_name })}
            onClick={() => {
              focusText(list.current)
              removeFile(file)
            }}
          />
        </li>
      ))}
      {sending?.uploads.map((upload) => (
        <UploadView key={upload.id} upload={upload} sending={sending} />
      ))}
    </ul>
  )
}

type UploadViewProps = {
  upload: Upload
  sending: ReturnType<typeof useUploads>
}

function UploadView({ upload, sending }: UploadViewProps) {
  const { file, sent, problem } = upload
  const item = useRef<HTMLLIElement>(null)
  // A passive effect ends after the button is gone.
  useLayoutEffect(
    () => () => {
      if (item.current?.contains(document.activeElement)) focusText(item.current)
    },
    [],
  )
  return (
    <li class="file" ref={item}>
      {problem === undefined ? <Paperclip /> : <FileWarning />}
      <span class="truncate">{file.name}</span>
      {problem === undefined ? (
        <progress
          aria-label={fill(texts.kit.uploading, { name: file.name })}
          max={Math.max(file.size, 1)}
          value={sent}
        />
      ) : (
        <>
          <span class="error truncate" role="alert" title={problem}>
            {problem}
          </span>
          <IconButton
            icon={RotateCw}
            label={fill(texts.kit.sendFileAgain, { name: file.name })}
            onClick={() => {
              focusText(item.current)
              sending.retry(upload)
            }}
          />
        </>
      )}
      <IconButton
        icon={X}
        label={fill(texts.kit.removeFile, { name: file.name })}
        onClick={() => sending.remove(upload)}
      />
    </li>
  )
}

/** For a button that goes. */
function focusText(part: Element | null) {
  part?.closest('form')?.querySelector('textarea')?.focus()
}

type AttachButtonProps = { label: string; take: (files: File[]) => void; isSingle?: boolean }

export function AttachButton({ label, take, isSingle = false }: AttachButtonProps) {
  const input = useRef<HTMLInputElement>(null)
  return (
    <>
      <IconButton icon={Paperclip} label={label} onClick={() => input.current?.click()} />
      <input
        ref={input}
        type="file"
        multiple={!isSingle}
        hidden
        onChange={({ currentTarget }) => {
          take([...(currentTarget.files ?? [])])
          currentTarget.value = ''
        }}
      />
    </>
  )
}

type ImageButtonProps = {
  text: string
  send: Client['files']['upload']
  choose: (url: string) => unknown
}

export function ImageButton({ text, send, choose }: ImageButtonProps) {
  const input = useRef<HTMLInputElement>(null)
  const { run, isBusy } = useAction(async (file: File) => choose((await send(file)).file_url))
  return (
    <>
      <Button isBusy={isBusy} onClick={() => input.current?.click()}>
        {text}
      </Button>
      <input
        ref={input}
        type="file"
        accept="image/*"
        aria-label={text}
        hidden
        onChange={({ currentTarget }) => {
          const [file] = currentTarget.files ?? []
          if (file) void run(file)
          currentTarget.value = ''
        }}
      />
    </>
  )
}
