import { Entrance } from './entrance.tsx'
import { Home } from './home.tsx'
import { texts } from './language.tsx'
import type { Session } from './session.ts'

export function Panel({ session }: { session: Session }) {
  const { side } = session
  const user = session.user.value
  const name = texts.value.sides[side]
  return (
    <section
      class={`panel ${side}`}
      tabIndex={-1}
      aria-label={user ? `${name}: ${user.display_name}` : name}
    >
      {user ? (
        // A new person must not see what the previous one has loaded.
        <Home key={user.id} session={session} user={user} />
      ) : (
        <Entrance session={session} />
      )}
    </section>
  )
}
