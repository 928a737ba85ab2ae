import { Paperclip, X } from 'lucide-preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { UploadedFile } from '../../../client/src/client.ts'
import { IconButton } from '../kit/button.tsx'
import { fill } from '../kit/texts.tsx'
import { toastError } from '../kit/toast.tsx'
import { texts } from './language.tsx'
import { useMe } from './me.ts'

type Shown = { name: string }
type Upload = Shown & {
  key: number
  /** Set when the upload is complete. */
  stored?: UploadedFile
  controller: AbortController
}

/** The limit for a ticket or a reply. */
const mostAttachments = 5
let lastKey = 0

/** Uploads the files of a ticket as soon as they are chosen. */
export function useUploads() {
  const { client } = useMe()
  const [uploads, setUploads] = useState<Upload[]>([])
  const latest = useRef(uploads)
  latest.current = uploads

  // Leaving the view aborts uploads.
  useEffect(
    () => () => {
      for (const { controller } of latest.current) controller.abort()
    },
    [],
  )

  async function upload(file: File) {
    const [key, controller] = [++lastKey, new AbortController()]
    setUploads((before) => [...before, { key, name: file.name, controller }])
    const change = (to: (one: Upload) => Upload[]) =>
      setUploads((before) => before.flatMap((one) => (one.key === key ? to(one) : [one])))
    try {
      const stored = await client.files.upload(file, { signal: controller.signal })
      change((one) => [{ ...one, stored }])
    } catch (error) {
      change(() => [])
      if (!controller.signal.aborted) toastError(error)
    }
  }

  return {
    uploads,
    isUploading: uploads.some(({ stored }) => !stored),
    isFull: uploads.length >= mostAttachments,
    files: uploads.flatMap(({ stored }) => stored ?? []),
    add(files: File[]) {
      for (const file of files.slice(0, mostAttachments - uploads.length)) void upload(file)
    },
    remove({ controller }: Upload) {
      controller.abort()
      setUploads((before) => before.filter((one) => one.controller !== controller))
    },
    clear: () => setUploads([]),
  }
}

type AttachButtonProps = { add: (files: File[]) => void; isDisabled: boolean }

export function AttachButton({ add, isDisabled }: AttachButtonProps) {
  const input = useRef<HTMLInputElement>(null)
  return (
    <>
      <IconButton
        icon={Paperclip}
        label={texts.value.attachments.attach}
        disabled={isDisabled}
        onClick={() => input.current?.click()}
      />
      <input
        ref={input}
        type="file"
        hidden
        onChange={({ currentTarget }) => {
          add([...(currentTarget.files ?? [])])
          currentTarget.value = ''
        }}
      />
    </>
  )
}

type AttachedFilesProps<File extends Shown> = {
  files: (File & { stored?: UploadedFile; key?: number })[]
  remove: (file: File) => void
}

/** Attached files; an upload is shown as long as it runs. */
export function AttachedFiles<File extends Shown>({ files, remove }: AttachedFilesProps<File>) {
  const text = texts.value.attachments
  if (files.length === 0) return null
  return (
    <ul class="uploads" aria-label={text.files}>
      {files.map((file) => (
        <li key={file.key} class="file">
          <Paperclip />
          <span class="truncate">{file.name}</span>
          {file.key !== undefined && !file.stored && (
            <progress aria-label={fill(text.uploading, { name: file.name })} />
          )}
          <IconButton
            icon={X}
            label={fill(text.remove, { name: file.name })}
            onClick={() => remove(file)}
          />
        </li>
      ))}
    </ul>
  )
}
