import { Paperclip, X } from 'lucide-preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Answer, NewTicket } from '../../../client/src/client.ts'
import { fill } from '../ui/texts.ts'
import { toastError } from '../ui/toast.tsx'
import { texts } from './language.tsx'
import { useMe } from './me.ts'

type StoredFile = Answer<'POST /v1/files'>
type Attachments = NonNullable<NewTicket['attachments']>
type Upload = {
  key: number
  name: string
  /** From 0 to 1. */
  progress: number
  /** Set when the upload is complete. */
  stored?: StoredFile
  controller: AbortController
}

/** The limit for a ticket or a reply. */
export const mostAttachments = 5
let lastKey = 0

/** Uploads files as soon as they are chosen; the message only refers to them.
 *  @param most how many there may be */
export function useUploads(most: number) {
  const { client } = useMe()
  const [uploads, setUploads] = useState<Upload[]>([])
  const latest = useRef(uploads)
  latest.current = uploads

  // Leaving the view aborts uploads.
  useEffect(() => () => abortAll(latest.current), [])

  function change(key: number, part: Partial<Upload>) {
    setUploads((before) => before.map((one) => (one.key === key ? { ...one, ...part } : one)))
  }

  function remove(key: number) {
    setUploads((before) => before.filter((one) => one.key !== key))
  }

  async function upload(file: File) {
    const key = ++lastKey
    const controller = new AbortController()
    setUploads((before) => [...before, { key, name: file.name, progress: 0, controller }])
    try {
      const stored = await client.files.upload(file, {
        signal: controller.signal,
        onProgress: (sent, total) => change(key, { progress: sent / total }),
      })
      change(key, { stored })
    } catch (error) {
      remove(key)
      if (!controller.signal.aborted) toastError(error)
    }
  }

  return {
    uploads,
    isUploading: uploads.some(({ stored }) => !stored),
    isFull: uploads.length >= most,
    /** The stored files, in the form that a message, ticket or reply takes. */
    files: uploads.flatMap(({ stored }) => stored ?? []) as StoredFile[] & Attachments, // five at most
    add(files: Iterable<File>) {
      for (const file of [...files].slice(0, most - uploads.length)) void upload(file)
    },
    remove(upload: Upload) {
      upload.controller.abort()
      remove(upload.key)
    },
    clear: () => setUploads([]),
  }
}

function abortAll(uploads: Upload[]) {
  for (const { controller } of uploads) controller.abort()
}

export type Uploads = ReturnType<typeof useUploads>

type AttachButtonProps = { uploads: Uploads; isBusy?: boolean }

export function AttachButton({ uploads, isBusy = false }: AttachButtonProps) {
  const { session } = useMe()
  const input = useRef<HTMLInputElement>(null)
  const label = texts.value.attachments.attach
  return (
    <>
      <button
        type="button"
        class="button ghost icon"
        aria-label={label}
        title={label}
        // Messages are queued without a connection; uploads are not.
        disabled={isBusy || uploads.isFull || session.isCut.value}
        onClick={() => input.current?.click()}
      >
        <Paperclip />
      </button>
      <input
        ref={input}
        type="file"
        hidden
        onChange={({ currentTarget }) => {
          uploads.add(currentTarget.files ?? [])
          currentTarget.value = ''
        }}
      />
    </>
  )
}

/** Attached files with their progress. */
export function UploadList({ uploads }: { uploads: Uploads }) {
  const text = texts.value.attachments
  if (uploads.uploads.length === 0) return null
  return (
    <ul class="uploads" aria-label={text.files}>
      {uploads.uploads.map((upload) => (
        <li key={upload.key} class="file">
          <Paperclip />
          <span class="truncate">{upload.name}</span>
          {!upload.stored && (
            <progress
              max={1}
              value={upload.progress}
              aria-label={fill(text.uploading, { name: upload.name })}
            />
          )}
          <button
            type="button"
            class="button ghost icon"
            aria-label={fill(text.remove, { name: upload.name })}
            onClick={() => uploads.remove(upload)}
          >
            <X />
          </button>
        </li>
      ))}
    </ul>
  )
}
