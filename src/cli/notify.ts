import { errorBody } from '../lib/error-body.ts'
import { AppError, StartError } from '../lib/errors.ts'
import { fieldProblems } from '../lib/fields.ts'
import { normalizeEmail } from '../lib/text.ts'
import { notificationTypes } from '../lib/vocabulary.ts'
import { createUserAdmin } from '../modules/accounts/user-admin.ts'
import { NewNotification } from '../modules/notifications/model.ts'
import { withCore } from './open.ts'
import { readOptions, readWord, type Terminal, wrongUsage } from './terminal.ts'

/** `hostline notify …`: queues a notification, which a running server makes at once, else the next start. */
export async function notify(args: string[], terminal: Terminal): Promise<void> {
  const values = readOptions(args, {
    email: { type: 'string' },
    type: { type: 'string' },
    title: { type: 'string' },
    body: { type: 'string' },
    data: { type: 'string' },
  })
  const email = normalizeEmail(values.email ?? '')
  if (email === undefined) throw wrongUsage('notify needs --email with an e-mail address')
  const [title, body] = [values.title?.trim(), values.body?.trim()]
  const event = {
    type: readWord('type', notificationTypes, values.type),
    ...(title !== undefined && { title }),
    ...(body !== undefined && { body }),
    data: parseData(values.data),
  }
  await withCore(terminal, async (core) => {
    const user_id = createUserAdmin(core).byEmail(email)()?.id
    if (user_id === undefined) throw new StartError(`there is no account ${email}`)
    mustBeValid({ user_id, ...event })
    await core.write(() => core.outbox.add('notification', { user_id, ...event }))
    terminal.out(`noted for ${email}: the server makes it at once, or at its next start`)
  })
}

function parseData(text = '{}'): Record<string, string> {
  try {
    return JSON.parse(text) ?? {}
  } catch {
    throw wrongUsage('--data must be a JSON object')
  }
}

/** The rules that other services' notifications obey. */
function mustBeValid(notification: object) {
  const details = fieldProblems(NewNotification, notification)
  const refusal = errorBody(new AppError('validation_error', { details }), 'en').error.details
  const [first] = Object.entries(refusal ?? {})
  if (first) throw wrongUsage(`--${first.join(' ')}`)
}
