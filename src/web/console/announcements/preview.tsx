import { Bell } from 'lucide-preact'

/** A preview in the layout that most systems use for notifications. */
export function Preview({ title, body }: { title: string; body: string }) {
  return (
    <section class="preview" aria-label="How it looks">
      <p class="small soft">How it looks</p>
      <div class="preview-card">
        <span class="avatar">
          <Bell />
        </span>
        <div class="entry-lines">
          <p class="row between">
            <strong class="truncate">{title || 'Title'}</strong>
            <span class="small soft">now</span>
          </p>
          <p class={`prose ${body === '' ? 'soft' : ''}`}>{body || 'The text of the broadcast.'}</p>
        </div>
      </div>
    </section>
  )
}
