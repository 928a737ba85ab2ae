/** The Markdown subset of the descriptions: paragraphs, and code between backticks. */
export function Markdown({ text }: { text: string }) {
  return text.split(/\n{2,}/).map((paragraph) => (
    <p key={paragraph} class="text">
      <Inline text={paragraph} />
    </p>
  ))
}

export function Inline({ text }: { text: string }) {
  return text
    .split('`')
    .map((part, index) => (index % 2 === 1 ? <code key={`${index}`}>{part}</code> : part))
}
