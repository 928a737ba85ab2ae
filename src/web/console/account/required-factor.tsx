import { logout, needsFactor } from '../session.ts'
import './account.css'
import { FactorSetUp } from './factor-set-up.tsx'

/** Shown when the service requires a second factor of every admin: no other request works before it is set up. */
export function RequiredFactor() {
  return (
    <main class="page account">
      <header>
        <div>
          <h1>Set up your second factor</h1>
          <p>Admins need one here. Afterwards you continue to the page you opened.</p>
        </div>
        <button type="button" class="button" onClick={logout}>
          Log out
        </button>
      </header>
      <section class="card" aria-label="Second factor">
        <FactorSetUp
          onDone={() => {
            needsFactor.value = false
          }}
        />
      </section>
    </main>
  )
}
