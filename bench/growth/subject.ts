import { startServer } from '../../test/support/process.ts'
import { addressOf, cast, type Landmarks, type Person, password } from './dataset.ts'

export type Request = {
  as: Person
  method: 'GET' | 'POST' | 'PUT'
  path: string
  body?: unknown
  /** What a good answer has. */
  status: 200 | 201 | 204
}

/** A server on a filled database, with the people who are measured logged in. */
export type Subject = Awaited<ReturnType<typeof startSubject>>

export async function startSubject(directory: string, landmarks: Landmarks) {
  const server = await startServer({ dataDir: directory })
  const tokens = new Map<Person, string>()

  /** @returns the text of the answer
   *  @throws when the answer is not the expected one */
  async function ask({ as, method, path, body, status }: Request): Promise<string> {
    const answer = await fetch(server.base + path, {
      method,
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${tokens.get(as) ?? ''}`,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    if (answer.status !== status) throw new Error(`${method} ${path} answered ${answer.status}`)
    return text
  }

  return {
    landmarks,
    ask,
    read: async (as: Person, path: string) =>
      JSON.parse(await ask({ as, method: 'GET', path, status: 200 })) as List,
    idOf: (person: Person) => landmarks.people[cast.indexOf(person)] ?? '',
    /** Access tokens live for minutes only. */
    async logIn() {
      for (const [n, person] of cast.entries()) {
        const answer = await fetch(`${server.base}/v1/auth/login`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ email: addressOf(n), password }),
        })
        const { access_token } = (await answer.json()) as { access_token: string }
        tokens.set(person, access_token)
      }
    },
    stop: () => server.kill('SIGTERM'),
  }
}

export type List = {
  data: Array<{ id: string; unread_count?: number }>
  pagination: { cursor?: string | null; total?: number }
}
