import { Copy, Download } from 'lucide-preact'
import { useEffect, useRef } from 'preact/hooks'
import { toast } from '../../ui/toast.tsx'

/** Recovery codes. The service does not show them again. */
export function RecoveryCodes({ codes, onKept }: { codes: string[]; onKept: () => void }) {
  const text = codes.join('\n')
  const heading = useRef<HTMLHeadingElement>(null)
  const list = useRef<HTMLUListElement>(null)
  useEffect(() => heading.current?.focus(), [])

  async function copy() {
    try {
      await navigator.clipboard.writeText(text)
      toast('The recovery codes are copied.')
    } catch {
      // Pages without HTTPS have no clipboard.
      if (list.current) getSelection()?.selectAllChildren(list.current)
      toast('Selected. Press Ctrl+C or ⌘C.')
    }
  }

  return (
    <div class="stack">
      <div>
        <h3 tabIndex={-1} ref={heading} class="unframed">
          Keep your recovery codes
        </h3>
        <p class="soft small">
          The second factor is on. When your phone is lost, each of these logs you in once. They are
          shown this once.
        </p>
      </div>
      <ul class="codes mono" ref={list}>
        {codes.map((code) => (
          <li key={code}>{code}</li>
        ))}
      </ul>
      <div class="row wrap">
        <button type="button" class="button" onClick={copy}>
          <Copy /> Copy
        </button>
        <button type="button" class="button" onClick={() => download(text)}>
          <Download /> Download
        </button>
        <button type="button" class="button primary" onClick={onKept}>
          I have saved them
        </button>
      </div>
    </div>
  )
}

function download(text: string) {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([`${text}\n`], { type: 'text/plain' }))
  link.download = 'hostline-recovery-codes.txt'
  link.click()
  URL.revokeObjectURL(link.href)
}
