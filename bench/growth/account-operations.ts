import { refreshTokenOf } from './account-fill.ts'
import { addressOf, cast, password } from './dataset.ts'
import { type Operation, reading } from './operation.ts'
import type { Request } from './subject.ts'

type Session = { access_token: string; refresh_token: string }

const profile = '/v1/users/me'

export const accountOperations: readonly Operation[] = [
  {
    name: 'log in',
    prepare: ({ landmarks }) => ({
      // The cast is excluded, because their sessions are listed.
      request(n) {
        const anybody = cast.length + (n % (landmarks.people.length - cast.length))
        return posting('login', { email: addressOf(anybody), password })
      },
    }),
  },
  { name: 'refresh', prepare: () => ({ request: (n) => refreshing(n, 0) }) },
  { name: 'check a token', prepare: () => reading('ada', profile) },
  refreshed('check a new token', 1, ({ access_token }) => ({
    as: { token: access_token },
    method: 'GET',
    path: profile,
    status: 200,
  })),
  { name: 'sessions, page 1', prepare: () => reading('ada', '/v1/auth/sessions?page=1') },
  refreshed('log out', 2, ({ access_token, refresh_token }) => ({
    ...posting('logout', { refresh_token }),
    as: { token: access_token },
    status: 204,
  })),
]

function posting(what: string, body: object): Request {
  return { as: 'nobody', method: 'POST', path: `/v1/auth/${what}`, body, status: 200 }
}

/** A refresh token works once, so each operation has a third of the sessions to itself. */
function refreshing(n: number, third: 0 | 1 | 2): Request {
  return posting('refresh', { refresh_token: refreshTokenOf(n * 3 + third) })
}

/** An operation on a session that was just refreshed. */
function refreshed(name: string, third: 1 | 2, request: (session: Session) => Request): Operation {
  return {
    name,
    prepare(subject) {
      let session: Session
      return {
        async before(n) {
          session = JSON.parse(await subject.ask(refreshing(n, third))) as Session
        },
        request: () => request(session),
      }
    },
  }
}
