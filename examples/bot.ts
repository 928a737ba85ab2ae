import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { ApiError, createClient, type Message, type Storage } from 'hostline-client'

/** A host that replies to messages, including those sent while it was offline: `bun examples/bot.ts URL EMAIL
 *  PASSWORD [FILE]`. It exits when somebody says "bye". */

const [baseUrl = 'http://localhost:3000', email = '', password = '', file = 'bot.json'] =
  process.argv.slice(2)

/** Session, unsent messages and the last answered message, in one file. */
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

// One message at a time. After a crash the last message may be answered again, with the same key, so that the reply is
// stored once.
let work = Promise.resolve()
client.on('new_message', ({ message }) => {
  const isFromGuest = message.type !== 'notice' && message.sender_id !== user.id
  if (isFromGuest) work = work.then(() => answer(message)).catch(console.error)
})

async function answer(message: Message) {
  const reply = { body: answerTo(message), client_id: `answer-${message.id}` }
  try {
    await client.send(message.conversation_id, reply)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    console.error(`not answered: ${error.reason ?? error.code}`) // such as `blocked`
  }
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

const since = storage.get('answered') ?? undefined
await client.connect({ since })
console.log(`${user.display_name} listens`)
