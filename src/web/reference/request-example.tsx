import { signal } from '@preact/signals'
import { useState } from 'preact/hooks'
import { CodeBlock } from './code-block.tsx'
import type { OperationEntry } from './contents.ts'
import { clientCallOf, curlOf } from './request-code.ts'
import type { Responses } from './responses.ts'

/** The selected language of all examples. */
const language = signal<'curl' | 'client'>('curl')
const languages = { curl: 'curl', client: 'Client' } as const

export function RequestExample({ entry, base }: { entry: OperationEntry; base: string }) {
  const isCurl = language.value === 'curl'
  return (
    <CodeBlock
      label={`Request: ${entry.title}`}
      text={isCurl ? curlOf(entry, base) : clientCallOf(entry)}
    >
      {(['curl', 'client'] as const).map((name) => (
        <button
          key={name}
          type="button"
          class="tab"
          aria-pressed={language.value === name}
          onClick={() => {
            language.value = name
          }}
        >
          {languages[name]}
        </button>
      ))}
    </CodeBlock>
  )
}

/** An example response: the success first, then the errors. */
export function ResponseExample({ responses: { examples } }: { responses: Responses }) {
  const [chosen, setChosen] = useState(0)
  const example = examples[chosen]
  if (!example) return null
  return (
    <CodeBlock
      label={`Answer: ${example.label}`}
      text={JSON.stringify(example.value, null, 2)}
      isJson
    >
      <select
        aria-label="Which answer"
        value={chosen}
        onChange={(event) => setChosen(Number(event.currentTarget.value))}
      >
        {examples.map(({ label }, index) => (
          <option key={label} value={index}>
            {label}
          </option>
        ))}
      </select>
    </CodeBlock>
  )
}
