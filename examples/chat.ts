import { createClient, type Message } from 'hostline-client'

/** Two people talk: `bun examples/chat.ts http://localhost:3000`. */

const baseUrl = process.argv[2] ?? 'http://localhost:3000'
const password = 'a long password'

async function enter(name: string) {
  const client = createClient({ baseUrl })
  const email = `${name.toLowerCase()}@example.com`
  const user = await client
    .login({ email, password })
    .catch(() => client.register({ email, password, display_name: name }))
  await client.connect()
  return { client, user }
}

const ada = await enter('Ada')
const bob = await enter('Bob')
const { id } = await ada.client.conversations.open(bob.user.id)

ada.client.on('typing', () => console.log('Bob is typing …'))
ada.client.on('read_receipt', () => console.log('Bob has read it.'))
const heard = new Promise<void>((resolve) => {
  ada.client.on('new_message', ({ message }) => {
    if (message.sender_id === ada.user.id) return
    console.log(`Bob: ${message.body}`)
    resolve()
  })
})
const answered = new Promise<Message>((resolve) => {
  bob.client.on('new_message', async ({ message }) => {
    if (message.sender_id === bob.user.id) return
    console.log(`Ada: ${message.body}`)
    await bob.client.conversations.markRead(id)
    bob.client.typing(id)
    resolve(bob.client.send(id, { body: 'Very well, thank you!' }))
  })
})

await ada.client.send(id, { body: 'How are you?' })
await Promise.all([heard, answered])
ada.client.close()
bob.client.close()
