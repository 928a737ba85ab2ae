import { Ban as BanIcon } from 'lucide-preact'
import type { Ban, BanKind } from '../../../../client/src/contract.ts'
import { ActionButton } from '../../kit/button.tsx'
import { Choices, TextField } from '../../kit/field.tsx'
import { askForm } from '../../kit/form.tsx'
import { now } from '../../kit/format.ts'
import { ListPage } from '../../kit/list.tsx'
import { Empty } from '../../kit/states.tsx'
import { texts } from '../../kit/texts.tsx'
import { Times } from '../../kit/time.tsx'
import { mutate, useList } from '../data.ts'

const words = texts.console.system.bans
const kinds: readonly BanKind[] = ['mail_domain', 'address', 'network']
const route = 'GET /v1/admin/bans'
const refreshes: [typeof route] = [route]

/** Mail domains, addresses and networks from which nobody may register or log in. */
export function Bans() {
  const list = useList(route, {})
  return (
    <ListPage
      text={words.about}
      action={words.add.button}
      add={addBan}
      label={texts.console.system.tabs.bans}
      list={list}
      empty={<Empty icon={BanIcon} {...words.none} />}
      render={(ban) => <BanRow ban={ban} />}
    />
  )
}

function BanRow({ ban }: { ban: Ban }) {
  const { id, kind, value, reason, created_at, until } = ban
  const name = value ?? words.hidden
  const isOver = until !== null && Date.parse(until) <= now.value
  return (
    <>
      <div class="main">
        <h2 class="row wrap">
          <span class="prose">{name}</span>
          <span class="badge">{isOver ? words.over : words.kinds[kind]}</span>
        </h2>
        {reason && <p class="prose">{reason}</p>}
        <p class="soft small">
          <Times
            of={[
              [words.since, created_at],
              [words.until, until],
            ]}
          />
        </p>
      </div>
      <ActionButton
        tone="ghost danger"
        texts={words.remove}
        values={{ name }}
        work={() => mutate('DELETE /v1/admin/bans/{id}', { params: { id } }, { refreshes })}
      />
    </>
  )
}

const addBan = () =>
  askForm({
    ...words.add,
    title: words.add.button,
    fields: (
      <>
        <Choices
          label={texts.fields.kind}
          name="kind"
          value="mail_domain"
          options={kinds.map((kind) => [kind, words.kinds[kind]])}
          isAcross
        />
        <TextField label={texts.fields.value} hint={words.valueHint} name="value" required />
        <TextField
          label={texts.fields.reason}
          hint={words.reasonHint}
          name="reason"
          maxLength={200}
        />
        <TextField label={words.end} hint={words.endHint} name="until" type="datetime-local" />
      </>
    ),
    submit(given) {
      const kind = kinds.find((known) => known === given.get('kind')) ?? 'mail_domain'
      const [value, reason, until] = ['value', 'reason', 'until'].map((name) =>
        String(given.get(name)).trim(),
      )
      const body = {
        kind,
        value: value ?? '',
        ...(reason && { reason }),
        ...(until && { until: new Date(until).toISOString() }),
      }
      return mutate('POST /v1/admin/bans', { body }, { refreshes })
    },
  })
