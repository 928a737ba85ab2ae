import { Plus, X } from 'lucide-preact'
import { useRef } from 'preact/hooks'
import { changeDraft, draft } from './draft.ts'

/** Key-value pairs for the app, such as a link. Folded, because few broadcasts need them. */
export function DataFields({ problems }: { problems: Record<string, string> }) {
  const { data } = draft.value
  const addButton = useRef<HTMLButtonElement>(null)
  const wrong = Object.entries(problems).filter(([field]) => field.startsWith('data'))
  const change = (index: number, changes: Partial<(typeof data)[number]>) =>
    changeDraft({ data: data.map((pair, at) => (at === index ? { ...pair, ...changes } : pair)) })

  function remove(index: number) {
    changeDraft({ data: data.filter((_, at) => at !== index) })
    addButton.current?.focus()
  }

  return (
    <details class="more" open={data.length > 0 || undefined}>
      <summary>More</summary>
      <div class="stack tight">
        <p class="small soft">
          Data for your apps, such as a link that they open. People do not see it.
        </p>
        {data.map(({ key, value }, index) => (
          <div class="row" key={index}>
            <input
              aria-label={`Name ${index + 1}`}
              placeholder="link"
              maxLength={64}
              pattern="[A-Za-z_][A-Za-z0-9_.\-]*"
              title="Letters, digits, _, . and -, a letter first"
              value={key}
              onInput={(event) => change(index, { key: event.currentTarget.value })}
            />
            <input
              aria-label={`Value ${index + 1}`}
              placeholder="https://example.com/hours"
              value={value}
              onInput={(event) => change(index, { value: event.currentTarget.value })}
            />
            <button
              type="button"
              class="button ghost icon"
              aria-label={`Remove row ${index + 1}`}
              onClick={() => remove(index)}
            >
              <X />
            </button>
          </div>
        ))}
        {wrong.map(([field, text]) => (
          <p class="error" key={field}>
            {field.replace(/^data\./, '')}: {text}
          </p>
        ))}
        <button
          type="button"
          class="button"
          ref={addButton}
          onClick={() => changeDraft({ data: [...data, { key: '', value: '' }] })}
        >
          <Plus />
          Add a row
        </button>
      </div>
    </details>
  )
}
