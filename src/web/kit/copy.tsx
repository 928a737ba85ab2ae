import { Check, Copy } from 'lucide-preact'
import type { RefObject } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { Button, IconButton } from './button.tsx'
import { openDialog, useStayOpen } from './dialog.tsx'
import { fill, texts } from './texts.tsx'
import { toast } from './toast.tsx'

const shownMilliseconds = 2_000

/** Copies a text, or selects it where the page has no clipboard.
 *  @param shown the element with the text */
export function useCopy(text: string, shown: RefObject<HTMLElement | null>) {
  const [isCopied, setCopied] = useState(false)
  async function copy() {
    try {
      await navigator.clipboard.writeText(text)
      setCopied(true)
      setTimeout(() => setCopied(false), shownMilliseconds)
    } catch {
      // Browsers offer the clipboard over HTTPS only, and users may deny it.
      if (shown.current) getSelection()?.selectAllChildren(shown.current)
      toast(texts.kit.selected)
    }
  }
  return { isCopied, copy }
}

type CopyableProps = {
  text: string
  /** Noun for the button's label, such as `the key`. */
  name: string
  /** Text to display when it differs from the text to copy. */
  shown?: string
}

export function Copyable({ text, name, shown = text }: CopyableProps) {
  const code = useRef<HTMLElement>(null)
  const { isCopied, copy } = useCopy(text, code)
  return (
    <div class="copyable row">
      <code ref={code}>{shown}</code>
      <IconButton
        icon={isCopied ? Check : Copy}
        label={fill(texts.kit.copy, { name })}
        onClick={copy}
      />
      <span class="visually-hidden" role="status">
        {isCopied && texts.kit.copied}
      </span>
    </div>
  )
}

type Secret = { title: string; text: string; secret: string; name: string }

/** Shows a secret that the service will not show again. */
export function showOnce(secret: Secret): Promise<unknown> {
  return openDialog((close) => <ShownSecret {...secret} onSaved={() => close()} />)
}

function ShownSecret({ title, text, secret, name, onSaved }: Secret & { onSaved: () => void }) {
  const element = useRef<HTMLDivElement>(null)
  useStayOpen(element)
  return (
    <div class="stack" ref={element}>
      <h2>{title}</h2>
      <p class="soft">{text}</p>
      <Copyable text={secret} name={name} />
      <div class="actions">
        <Button tone="primary" onClick={onSaved}>
          {texts.kit.saved}
        </Button>
      </div>
    </div>
  )
}

export function download(name: string, text: string, type = 'text/plain'): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([text], { type }))
  link.download = name
  link.click()
  URL.revokeObjectURL(link.href)
}
