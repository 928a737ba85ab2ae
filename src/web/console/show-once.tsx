import { openDialog } from '../ui/dialog.tsx'
import { Copyable } from './copyable.tsx'

type Secret = { title: string; text: string; secret: string; name: string }

/** Shows a secret that the service will not show again. */
export function showOnce({ title, text, secret, name }: Secret): Promise<unknown> {
  return openDialog((close) => (
    <div class="body">
      <h2>{title}</h2>
      <p class="soft">{text}</p>
      <Copyable text={secret} name={name} />
      <div class="actions">
        <button type="button" class="button primary" onClick={() => close()}>
          I have saved it
        </button>
      </div>
    </div>
  ))
}
