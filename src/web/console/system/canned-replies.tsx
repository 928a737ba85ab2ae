import { MessageSquareQuote } from 'lucide-preact'
import type { CannedReply } from '../../../../client/src/contract.ts'
import { ActionButton, Button } from '../../kit/button.tsx'
import { Choices, TextArea, TextField } from '../../kit/field.tsx'
import { askForm, saveChanges } from '../../kit/form.tsx'
import { ListPage } from '../../kit/list.tsx'
import { Empty } from '../../kit/states.tsx'
import { fill, languages, texts } from '../../kit/texts.tsx'
import { mutate, useList } from '../data.ts'

const words = texts.console.system.replies
const { edit, editOne } = texts.console.system
const route = 'GET /v1/admin/support/canned-replies'
const one = '/v1/admin/support/canned-replies/{id}'
const refreshes: [typeof route] = [route]

export function CannedReplies() {
  const list = useList(route, {})
  return (
    <ListPage
      text={words.about}
      action={words.add.button}
      add={() => writeReply()}
      label={texts.console.system.tabs.replies}
      list={list}
      empty={<Empty icon={MessageSquareQuote} {...words.none} />}
      render={(reply) => <ReplyRow reply={reply} />}
    />
  )
}

function ReplyRow({ reply }: { reply: CannedReply }) {
  const { id, title, body } = reply
  return (
    <>
      <div class="main">
        <h2 class="prose" dir="auto">
          {title}
        </h2>
        <p class="soft small prose clamped" dir="auto">
          {body}
        </p>
      </div>
      <div class="row">
        <Button label={fill(editOne, { name: title })} onClick={() => writeReply(reply)}>
          {edit}
        </Button>
        <ActionButton
          tone="ghost danger"
          texts={words.remove}
          values={{ title }}
          work={() => mutate(`DELETE ${one}`, { params: { id } }, { refreshes })}
        />
      </div>
    </>
  )
}

const writeReply = (reply?: CannedReply) =>
  askForm({
    ...(reply ? { title: words.change, action: texts.kit.save } : words.add),
    fields: (
      <>
        <TextField
          label={texts.fields.title}
          hint={words.titleHint}
          name="title"
          maxLength={200}
          defaultValue={reply?.title ?? ''}
          required
          dir="auto"
        />
        <TextArea
          label={texts.console.desk.composer.reply}
          name="body"
          rows={8}
          defaultValue={reply?.body ?? ''}
          required
        />
        <Choices
          label={texts.fields.lang}
          name="locale"
          value={reply?.locale ?? ''}
          options={[['', texts.kit.any], ...languages]}
          isAcross
        />
      </>
    ),
    submit(given, attempt) {
      const body = {
        title: String(given.get('title')),
        body: String(given.get('body')),
        locale: languages.find(([name]) => name === given.get('locale'))?.[0] ?? null,
      }
      const creation = 'POST /v1/admin/support/canned-replies'
      if (!reply) return mutate(creation, { body, ...attempt }, { refreshes })
      const { id: _, ...before } = reply
      return saveChanges(body, before, (changes) =>
        mutate(`PATCH ${one}`, { params: { id: reply.id }, body: changes }, { refreshes }),
      )
    },
  })
