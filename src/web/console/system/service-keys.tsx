import { KeyRound } from 'lucide-preact'
import type { CursorPage, ServiceKey } from '../../../../client/src/contract.ts'
import { useAction } from '../../ui/action.ts'
import { confirmAction } from '../../ui/dialog.tsx'
import { now } from '../../ui/format.ts'
import { useList } from '../../ui/resource.ts'
import { useShortcut } from '../../ui/shortcuts.tsx'
import { Empty } from '../../ui/states.tsx'
import { Time } from '../../ui/time.tsx'
import { toast } from '../../ui/toast.tsx'
import { pageQuery } from '../page-query.ts'
import { useRefresh } from '../refresh.ts'
import { RowList } from '../row-list.tsx'
import { request } from '../session.ts'
import { addServiceKey, isPowerful } from './service-key-form.tsx'

export function ServiceKeys() {
  const list = useList(
    'keys',
    (cursor, signal) =>
      request('GET /v1/admin/service-keys', { query: pageQuery(cursor), signal }) as Promise<
        CursorPage<ServiceKey>
      >, // with `limit` the response has a cursor
  )
  useRefresh(list.reload)
  async function add() {
    if (await addServiceKey()) list.reload()
  }
  const revoke = useAction(async ({ id, name }: ServiceKey) => {
    const isMeant = await confirmAction({
      title: `Revoke “${name}”?`,
      text: 'Whoever uses the key is refused from now on. It cannot be given back.',
      action: 'Revoke',
      isDangerous: true,
    })
    if (!isMeant) return
    await request('DELETE /v1/admin/service-keys/{id}', { params: { id } })
    toast(`“${name}” was revoked.`)
    list.reload()
  })
  useShortcut('n', 'Add a service key', add)
  return (
    <>
      <div class="row between wrap">
        <p class="soft">With a key the rest of the platform feeds this service.</p>
        <button type="button" class="button primary" onClick={add}>
          Add a key
        </button>
      </div>
      <RowList
        label="Service keys"
        list={list}
        empty={
          <Empty icon={KeyRound} title="No service keys">
            <p>Keys for payments, calls or your own user database would be here.</p>
          </Empty>
        }
        render={(key) => <KeyRow serviceKey={key} revoke={revoke.run} />}
      />
    </>
  )
}

type RowProps = { serviceKey: ServiceKey; revoke: (key: ServiceKey) => Promise<unknown> }

function KeyRow({ serviceKey, revoke }: RowProps) {
  const { name, scopes, created_at: createdAt, last_used_at: lastUsedAt } = serviceKey
  const { expires_at: expiresAt, revoked_at: revokedAt } = serviceKey
  const hasExpired = expiresAt !== null && Date.parse(expiresAt) <= now.value
  const isOver = revokedAt !== null || hasExpired
  return (
    <>
      <div class="main">
        <h2 class="row wrap">
          <span class="prose">{name}</span>
          {isOver && <span class="badge">{revokedAt ? 'Revoked' : 'Expired'}</span>}
        </h2>
        <ul class="row wrap" aria-label="Scopes">
          {scopes.map((scope) => (
            <li key={scope} class={`badge ${isPowerful(scope) && !isOver ? 'warning' : ''}`}>
              {scope}
            </li>
          ))}
        </ul>
        <p class="soft small">
          Made <Time at={createdAt} />,{' '}
          {lastUsedAt ? (
            <>
              last used <Time at={lastUsedAt} />
            </>
          ) : (
            'never used'
          )}
          {revokedAt && (
            <>
              , revoked <Time at={revokedAt} />
            </>
          )}
          {expiresAt && !revokedAt && (
            <>
              , {hasExpired ? 'expired' : 'ends'} <Time at={expiresAt} />
            </>
          )}
        </p>
      </div>
      {!isOver && (
        <button
          type="button"
          class="button danger"
          aria-label={`Revoke ${name}`}
          onClick={() => revoke(serviceKey)}
        >
          Revoke
        </button>
      )}
    </>
  )
}
