import { Check, Copy } from 'lucide-preact'
import { useRef, useState } from 'preact/hooks'
import { toast } from '../ui/toast.tsx'

const shownMilliseconds = 2_000

type CopyableProps = {
  text: string
  /** Noun for the button's label, such as `the key`. */
  name: string
  /** Text to display when it differs from the text to copy. */
  shown?: string
}

export function Copyable({ text, name, shown = text }: CopyableProps) {
  const code = useRef<HTMLElement>(null)
  const [isCopied, setCopied] = useState(false)

  async function copy() {
    try {
      await navigator.clipboard.writeText(text)
      setCopied(true)
      setTimeout(() => setCopied(false), shownMilliseconds)
    } catch {
      // Pages without HTTPS have no clipboard.
      if (code.current) getSelection()?.selectAllChildren(code.current)
      toast('Selected. Press Ctrl+C or ⌘C.')
    }
  }

  return (
    <div class="copyable">
      <code ref={code}>{shown}</code>
      <button type="button" class="button ghost icon" aria-label={`Copy ${name}`} onClick={copy}>
        {isCopied ? <Check /> : <Copy />}
      </button>
      <span class="visually-hidden" role="status">
        {isCopied && 'Copied'}
      </span>
    </div>
  )
}
