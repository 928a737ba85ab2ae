const address = /(https?:\/\/[^\s<>"]*[^\s<>".,;:!?)\]])/

/** A text in which web addresses are links. */
export function Linked({ text }: { text: string }) {
  return (
    <>
      {text.split(address).map((part, index) =>
        // A split by one group alternates between texts and matches.
        index % 2 === 0 ? (
          part
        ) : (
          <a key={index} href={part} target="_blank" rel="noreferrer">
            {part}
          </a>
        ),
      )}
    </>
  )
}
