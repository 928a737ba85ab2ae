import { Check, Copy } from 'lucide-preact'
import type { ComponentChildren } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { toast } from '../ui/toast.tsx'

type CodeBlockProps = {
  /** Label for screen readers. */
  label: string
  text: string
  isJson?: boolean
  children?: ComponentChildren
}

const shownMilliseconds = 2_000

export function CodeBlock({ label, text, isJson = false, children }: CodeBlockProps) {
  const code = useRef<HTMLPreElement>(null)
  return (
    <figure class="code" aria-label={label}>
      <figcaption class="row between">
        <span class="row small">{children ?? label}</span>
        <CopyButton text={text} label={label} source={() => code.current} />
      </figcaption>
      <pre ref={code}>{isJson ? <JsonText text={text} /> : text}</pre>
    </figure>
  )
}

type CopyButtonProps = { text: string; label: string; source: () => HTMLElement | null }

function CopyButton({ text, label, source }: CopyButtonProps) {
  const [isCopied, setCopied] = useState(false)
  async function copy() {
    try {
      await navigator.clipboard.writeText(text)
    } catch {
      // Pages without HTTPS have no clipboard.
      select(source())
      toast('It is selected: copy it with Ctrl C.')
      return
    }
    setCopied(true)
    setTimeout(() => setCopied(false), shownMilliseconds)
  }
  return (
    <button
      type="button"
      class="button ghost icon"
      aria-label={isCopied ? 'Copied' : `Copy: ${label}`}
      title="Copy"
      onClick={copy}
    >
      {isCopied ? <Check /> : <Copy />}
    </button>
  )
}

function select(element: HTMLElement | null) {
  if (element) getSelection()?.selectAllChildren(element)
}

const tokens = /("(?:\\.|[^"\\])*")(\s*:)?|\b(?:true|false|null)\b|-?\b\d[\d.eE+-]*/g

/** JSON with different colours for names and values. */
function JsonText({ text }: { text: string }) {
  const parts: ComponentChildren[] = []
  let end = 0
  for (const match of text.matchAll(tokens)) {
    const [whole, string, colon] = match
    parts.push(text.slice(end, match.index))
    end = match.index + whole.length
    parts.push(
      colon === undefined ? (
        <span key={end} class={string === undefined ? 'json-other' : 'json-text'}>
          {whole}
        </span>
      ) : (
        whole
      ),
    )
  }
  return [...parts, text.slice(end)]
}
