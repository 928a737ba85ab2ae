import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createClient, type Message, type Storage } from 'hostline-client'

/** A host that answers, also what was said while it was away: `bun examples/bot.ts URL EMAIL PASSWORD [FILE]`. It ends when
 *  somebody says "bye". */

const [baseUrl = 'http://localhost:3000', email = '', password = '', file = 'bot.json'] =
  process.argv.slice(2)

/** Session, unsent messages and the last message that was answered, in one file. */
function fileStorage(path: string): Storage {
  const values: Record<string, string> = existsSync(path)
    ? JSON.parse(readFileSync(path, 'utf8'))
    : {}
  const save = () => writeFileSync(path, JSON.stringify(values), { mode: 0o600 })
  return {
    get: (key) => values[key],
    set(key, value) {
      values[key] = value
      save()
    },
    remove(key) {
      delete values[key]
      save()
    },
  }
}

const storage = fileStorage(file)
const client = createClient({ baseUrl, storage })
const user = client.restore() ?? (await client.login({ email, password }))

const answerTo = ({ body }: Message) =>
  body === 'bye' ? 'Goodbye!' : `You said: ${body}. I will call you back.`

// One message after the other. An answer that is sent twice would have to be the same: that is what `send` takes care of.
let work = Promise.resolve()
client.on('new_message', ({ message }) => {
  if (message.sender_id !== user.id) work = work.then(() => answer(message))
})

async function answer(message: Message) {
  await client.send(message.conversation_id, { body: answerTo(message) })
  await client.conversations.markRead(message.conversation_id, message.id)
  storage.set('answered', message.id)
  console.log(`answered: ${message.body}`)
  if (message.body === 'bye') client.close()
}

client.on('session_ended', () => {
  console.error('the session ended: start again with the password')
  process.exitCode = 1
  client.close()
})

const since = storage.get('answered')
await client.connect(since ? { since } : {})
console.log(`${user.display_name} listens`)
