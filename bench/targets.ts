/** What the load generator needs to know of a server: who talks with whom, and how. */
export type Talker = {
  socketUrl: string
  sendUrl: string
  headers: Record<string, string>
  frame: (body: string) => string
}
/** A sender and the person they talk with. */
export type Pair = { sender: Talker; recipient: Talker }

const json = { 'content-type': 'application/json' }

/** Pairs on the floor server, which knows nobody. */
export function floorPairs(base: string, count: number): Pair[] {
  const talker = (user: number): Talker => ({
    socketUrl: `${base.replace('http', 'ws')}/ws?user=${user}`,
    sendUrl: `${base}/send?user=${user}`,
    headers: json,
    frame: (body) => JSON.stringify({ type: 'message', body }),
  })
  return Array.from({ length: count }, (_, n) => ({
    sender: talker(2 * n),
    recipient: talker(2 * n + 1),
  }))
}

/** Registers the users and opens their conversations. */
export async function hostlinePairs(base: string, count: number): Promise<Pair[]> {
  return Promise.all(
    Array.from({ length: count }, async (_, n) => {
      const [a, b] = await Promise.all([register(base, `a${n}`), register(base, `b${n}`)])
      const headers = { ...json, authorization: `Bearer ${a.token}` }
      const opened = await fetch(`${base}/v1/chat/conversations`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ user_id: b.id }),
      })
      const { id } = (await opened.json()) as { id: string }
      const talker = (token: string): Talker => ({
        socketUrl: `${base.replace('http', 'ws')}/v1/chat/ws?token=${token}`,
        sendUrl: `${base}/v1/chat/conversations/${id}/messages`,
        headers: { ...json, authorization: `Bearer ${token}` },
        frame: (body) => JSON.stringify({ type: 'message', conversation_id: id, body }),
      })
      return { sender: talker(a.token), recipient: talker(b.token) }
    }),
  )
}

async function register(base: string, name: string) {
  const answer = await fetch(`${base}/v1/auth/register`, {
    method: 'POST',
    headers: json,
    body: JSON.stringify({ email: `${name}@bench.example`, password: 'correct horse battery' }),
  })
  if (answer.status !== 201) throw new Error(`register answered ${answer.status}`)
  const { user, access_token: token } = (await answer.json()) as {
    user: { id: string }
    access_token: string
  }
  return { id: user.id, token }
}
