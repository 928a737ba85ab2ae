import type { System } from '../../../../client/src/contract.ts'
import { count } from '../../ui/format.ts'
import { inWords } from '../names.ts'

/** Waiting and failed jobs by kind. */
export function Outbox({ rows }: { rows: System['outbox'] }) {
  const deadFirst = rows.toSorted((one, other) => one.state.localeCompare(other.state))
  return (
    <section class="stack tight" aria-labelledby="outbox">
      <div class="row between">
        <h2 id="outbox">Outbox</h2>
        <a class="small" href="/console/system/jobs">
          Show jobs
        </a>
      </div>
      <ul class="entries compact">
        {deadFirst.map(({ kind, state, count: number }) => (
          <li key={`${kind} ${state}`}>
            <span class="main">{inWords(kind)}</span>
            <span class={`badge ${state === 'dead' ? 'danger' : ''}`}>
              {state === 'dead' ? 'Given up' : 'Waiting'}
            </span>
            <span class="amount number">{count(number)}</span>
          </li>
        ))}
        {rows.length === 0 && <li class="soft small">Nothing waits.</li>}
      </ul>
    </section>
  )
}
