import { startServer } from '../../test/support/process.ts'
import { addressOf, cast, idOf, type Landmarks, type Person, password } from './dataset.ts'

/** `platform` has a service key; a token is for a session that an operation opens itself. */
export type Caller = Person | 'platform' | 'nobody' | { token: string }
export type Request = {
  as: Caller
  method: 'GET' | 'PATCH' | 'POST' | 'PUT'
  path: string
  body?: unknown
  /** The expected status. */
  status: 200 | 201 | 204
}

/** A server on a filled database, with the measured people logged in. */
export type Subject = Awaited<ReturnType<typeof startSubject>>

export async function startSubject(directory: string, landmarks: Landmarks) {
  const server = await startServer({
    dataDir: directory,
    environment: {
      // Resolved tickets are closed only by an operation.
      SUPPORT_AUTOCLOSE_DAYS: '0',
      SUPPORT_REOPEN_DAYS: '365',
      RATE_LIMIT_SERVICE: 'off',
    },
  })
  const tokens = new Map<Caller, string>()
  const tokenOf = (caller: Caller) =>
    typeof caller === 'object' ? caller.token : tokens.get(caller)

  /** @returns the body as text
   *  @throws when the status is not the expected one */
  async function ask({ as, method, path, body, status }: Request): Promise<string> {
    const token = tokenOf(as)
    const answer = await fetch(server.base + path, {
      method,
      headers: {
        'content-type': 'application/json',
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    if (answer.status !== status) throw new Error(`${method} ${path} answered ${answer.status}`)
    return text
  }

  async function makeServiceKey(): Promise<string> {
    const proof = { path: '/v1/auth/confirm', body: { password }, status: 204 } as const
    await ask({ as: 'root', method: 'POST', ...proof })
    const path = '/v1/admin/service-keys'
    const answer = await ask({
      as: 'root',
      method: 'POST',
      path,
      body: { name: 'growth', scopes: ['all', 'sessions'] },
      status: 201,
    })
    return (JSON.parse(answer) as { key: string }).key
  }

  return {
    landmarks,
    base: server.base,
    ask,
    read: async (as: Caller, path: string) =>
      JSON.parse(await ask({ as, method: 'GET', path, status: 200 })) as List,
    idOf: (person: Person) => idOf(landmarks, person),
    /** Access tokens expire within minutes. */
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
      tokens.set('platform', tokens.get('platform') ?? (await makeServiceKey()))
    },
    stop: () => server.kill('SIGTERM'),
  }
}

export type List = {
  data: Array<{ id: string; unread_count?: number }>
  pagination: { cursor?: string | null; total?: number }
}
