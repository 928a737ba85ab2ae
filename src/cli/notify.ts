import { errorBody } from '../lib/error-body.ts'
import { AppError, StartError } from '../lib/errors.ts'
import { fieldProblems } from '../lib/fields.ts'
import { normalizeEmail } from '../lib/text.ts'
import { type NotificationType, notificationTypes } from '../lib/vocabulary.ts'
import { NewNotification } from '../modules/notifications/model.ts'
import { withDirectory } from './directory.ts'
import type { Terminal } from './terminal.ts'
import { readOptions, refuseArguments, wrongUsage } from './usage.ts'

/** `hostline notify …`: notes a notification, which a running server makes at once, and another one at its start. */
export async function notify(args: string[], terminal: Terminal): Promise<void> {
  const { values, positionals } = readOptions(args, {
    email: { type: 'string' },
    type: { type: 'string' },
    title: { type: 'string' },
    body: { type: 'string' },
    data: { type: 'string' },
  })
  refuseArguments(positionals)
  const [title, body] = [values.title?.trim(), values.body?.trim()]
  const email = normalizeEmail(values.email ?? '')
  if (email === undefined) throw wrongUsage('notify needs --email with an e-mail address')
  const type = parseType(values.type)
  const data = parseData(values.data)
  await withDirectory(terminal, async ({ people, outbox, write }) => {
    const user = people.byEmail(email)()
    if (!user) throw new StartError(`there is no account ${email}`)
    mustBeValid({ user_id: user.id, type, title, body, data })
    const texts = { ...(title !== undefined && { title }), ...(body !== undefined && { body }) }
    await write(() => outbox.add('notification', { user_id: user.id, type, ...texts, data }))
    terminal.out(`noted for ${email}: the server makes it at once, or at its next start`)
  })
}

function parseType(text: string | undefined): NotificationType {
  const type = notificationTypes.find((known) => known === text)
  if (!type) throw wrongUsage(`the type must be one of ${notificationTypes.join(', ')}`)
  return type
}

function parseData(text = '{}'): Record<string, string> {
  try {
    return JSON.parse(text) ?? {}
  } catch {
    throw wrongUsage('--data must be a JSON object')
  }
}

/** The rules of the feed. */
function mustBeValid(wish: object) {
  const details = fieldProblems(NewNotification, wish)
  const refusal = errorBody(new AppError('validation_error', { details }), 'en').error.details
  const [first] = Object.entries(refusal ?? {})
  if (first) throw wrongUsage(`--${first.join(' ')}`)
}
