import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import { Inline } from './markdown.tsx'
import { addressOf, useNearViewport } from './reading.ts'

type PartProps = {
  id: string
  title: string
  /** Always rendered, so that the browser's own search finds it. */
  head: ComponentChildren
  /** Rendered when the part comes near the viewport. */
  text: () => ComponentChildren
  examples?: () => ComponentChildren
}

/** A section with its own URL. */
export function Part({ id, title, head, text, examples }: PartProps) {
  const element = useRef<HTMLElement>(null)
  const isNear = useNearViewport(element)
  return (
    <article
      id={id}
      data-part
      ref={element}
      class={isNear ? 'part' : 'part far'}
      aria-labelledby={`${id}-title`}
    >
      <div class="part-text">
        <h3 id={`${id}-title`} tabIndex={-1}>
          <a class="title-link" href={addressOf(id)}>
            <Inline text={title} />
          </a>
        </h3>
        {head}
        {isNear && text()}
      </div>
      {examples && <div class="part-examples">{isNear && examples()}</div>}
    </article>
  )
}
