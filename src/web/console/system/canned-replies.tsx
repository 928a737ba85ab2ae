import { MessageSquareQuote } from 'lucide-preact'
import type { CannedReply, CursorPage } from '../../../../client/src/contract.ts'
import { useAction } from '../../ui/action.ts'
import { confirmAction, openDialog } from '../../ui/dialog.tsx'
import { Field } from '../../ui/field.tsx'
import { useList } from '../../ui/resource.ts'
import { useShortcut } from '../../ui/shortcuts.tsx'
import { Empty } from '../../ui/states.tsx'
import { toast } from '../../ui/toast.tsx'
import { FormDialog } from '../form-dialog.tsx'
import { pageQuery } from '../page-query.ts'
import { useRefresh } from '../refresh.ts'
import { RowList } from '../row-list.tsx'
import { request } from '../session.ts'

export function CannedReplies() {
  const list = useList(
    'replies',
    (cursor, signal) =>
      request('GET /v1/admin/support/canned-replies', {
        query: pageQuery(cursor),
        signal,
      }) as Promise<CursorPage<CannedReply>>, // with `limit` the response has a cursor
  )
  useRefresh(list.reload)
  async function write(reply?: CannedReply) {
    if (await writeReply(reply)) list.reload()
  }
  const remove = useAction(async ({ id, title }: CannedReply) => {
    const isMeant = await confirmAction({
      title: `Remove “${title}”?`,
      text: 'Nobody at the desk can use it any more. Replies that were sent stay.',
      action: 'Remove',
      isDangerous: true,
    })
    if (!isMeant) return
    await request('DELETE /v1/admin/support/canned-replies/{id}', { params: { id } })
    toast(`“${title}” was removed.`)
    list.reload()
  })
  useShortcut('n', 'Add a canned reply', () => write())
  return (
    <>
      <div class="row between wrap">
        <p class="soft">What the desk answers often, ready to be used in a ticket.</p>
        <button type="button" class="button primary" onClick={() => write()}>
          Add a reply
        </button>
      </div>
      <RowList
        label="Canned replies"
        list={list}
        empty={
          <Empty icon={MessageSquareQuote} title="No canned replies">
            <p>Answers that you give often would be here, for everybody at the desk.</p>
          </Empty>
        }
        render={(reply) => <ReplyRow reply={reply} edit={write} remove={remove.run} />}
      />
    </>
  )
}

type RowProps = {
  reply: CannedReply
  edit: (reply: CannedReply) => Promise<unknown>
  remove: (reply: CannedReply) => Promise<unknown>
}

function ReplyRow({ reply, edit, remove }: RowProps) {
  const { title, body } = reply
  return (
    <>
      <div class="main">
        <h2 class="prose">{title}</h2>
        <p class="soft small prose preview">{body}</p>
      </div>
      <div class="row">
        <button
          type="button"
          class="button"
          aria-label={`Edit ${title}`}
          onClick={() => edit(reply)}
        >
          Edit
        </button>
        <button
          type="button"
          class="button ghost danger"
          aria-label={`Remove ${title}`}
          onClick={() => remove(reply)}
        >
          Remove
        </button>
      </div>
    </>
  )
}

/** @returns whether the reply was saved */
async function writeReply(reply?: CannedReply): Promise<boolean> {
  async function save(given: FormData) {
    const body = { title: String(given.get('title')), body: String(given.get('body')) }
    if (!reply) return request('POST /v1/admin/support/canned-replies', { body })
    const params = { id: reply.id }
    return request('PATCH /v1/admin/support/canned-replies/{id}', { params, body })
  }
  const isKept = await openDialog<true>((close) => (
    <FormDialog
      title={reply ? 'Edit the reply' : 'Add a canned reply'}
      action={reply ? 'Save' : 'Add the reply'}
      close={() => close()}
      submit={async (given) => {
        await save(given)
        close(true)
      }}
    >
      {(problems) => (
        <>
          <Field label="Title" hint="Only the desk sees it." problem={problems['title']}>
            {(attributes) => (
              <input
                name="title"
                maxLength={200}
                defaultValue={reply?.title}
                required
                {...attributes}
              />
            )}
          </Field>
          <Field label="Reply" problem={problems['body']}>
            {(attributes) => (
              <textarea name="body" rows={8} defaultValue={reply?.body} required {...attributes} />
            )}
          </Field>
        </>
      )}
    </FormDialog>
  ))
  return isKept === true
}
