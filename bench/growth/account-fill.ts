import { refreshTokens, sessions, users } from '../../src/db/schema.ts'
import { prepareInsert } from '../../src/db/statements.ts'
import { createPasswords } from '../../src/modules/accounts/sign-in/passwords.ts'
import {
  addressOf,
  admins,
  atScale,
  cast,
  type Dataset,
  differs,
  type Fill,
  password,
} from './dataset.ts'

/** `count` people at scale 1, the cast included, and one more. */
export function peopleFill(count: number): Fill {
  return {
    name: 'people',
    fill: (dataset) => fillPeople(dataset, atScale(count, dataset.landmarks.scale) + 1),
    rules: ({ scale }) => ({
      'as many people as planned': differs('users', atScale(count, scale) + 1),
    }),
  }
}

async function fillPeople(dataset: Dataset, count: number) {
  const { sqlite, landmarks, newId, clock, repeat } = dataset
  // Hashing is slow on purpose: all people share a password, hashed once.
  const passwordHash = await createPasswords().hash(password)
  const insert = prepareInsert(sqlite, users)
  repeat(count, (n) => {
    const id = newId()
    landmarks.people.push(id)
    insert({
      n: n + 1,
      id,
      email: addressOf(n),
      displayName: `Person ${n}`,
      avatarUrl: null,
      locale: 'en',
      role: admins.some((admin) => admin === cast[n]) ? 'admin' : 'user',
      emailVerified: true,
      isProvisional: false,
      passwordHash,
      createdAt: clock.now(),
      disabledAt: null,
      emailBouncedAt: null,
      quietHours: null,
      externalId: null,
      deletedAt: null,
    })
  })
}

/** At scale 1; ten for each user at every scale. */
const plannedSessions = 1_000_000
const day = 86_400_000
const refreshTokenDays = 30
/** The days between login and last use of a session. */
const usedDays = 10

/** The valid refresh token of the n-th session. */
export const refreshTokenOf = (n: number) => `rt_${String(n).padStart(43, '0')}`

export const sessionsFill: Fill = {
  name: 'sessions',
  fill: fillSessions,
  rules: ({ scale }) => ({
    'as many sessions as planned': differs('sessions', atScale(plannedSessions, scale)),
    'each has a live token':
      'SELECT (SELECT count(*) FROM refresh_tokens WHERE consumed_at IS NULL) <> (SELECT count(*) FROM sessions)',
    'live tokens descend from consumed ones of their session': `SELECT count(*) FROM refresh_tokens t
      LEFT JOIN refresh_tokens p ON p.hash = t.parent_hash AND p.session_id = t.session_id AND p.consumed_at IS NOT NULL
      WHERE t.parent_hash IS NOT NULL AND p.hash IS NULL`,
    'nothing has expired': `SELECT count(*) FROM refresh_tokens WHERE expires_at < ${Date.now() + day}`,
  }),
}

function fillSessions({ sqlite, landmarks, newId, clock, pick, repeat }: Dataset) {
  const insertSession = prepareInsert(sqlite, sessions)
  const insertToken = prepareInsert(sqlite, refreshTokens)
  const { people, scale } = landmarks
  repeat(atScale(plannedSessions, scale), (n) => {
    const sessionId = newId()
    const userId = people[n % people.length] ?? ''
    const createdAt = clock.now()
    const isRefreshed = pick(2) === 0
    const lastUsedAt = createdAt + (isRefreshed ? pick(usedDays * day) : 0)
    const client = { userAgent: 'growth', ip: '192.0.2.1' }
    const state = { revokedAt: null, confirmedAt: null, isByPlatform: false }
    insertSession({ id: sessionId, userId, ...client, createdAt, lastUsedAt, ...state })
    const parentHash = isRefreshed ? hashOf(`the parent of ${refreshTokenOf(n)}`) : null
    const add = (hash: string, issuedAt: number, isLive: boolean) =>
      insertToken({
        hash,
        sessionId,
        parentHash: isLive ? parentHash : null,
        expiresAt: issuedAt + refreshTokenDays * day,
        consumedAt: isLive ? null : lastUsedAt,
        keyHash: null,
      })
    if (parentHash !== null) add(parentHash, createdAt, false)
    add(hashOf(refreshTokenOf(n)), lastUsedAt, true)
  })
}

const hashOf = (token: string) => new Bun.CryptoHasher('sha256').update(token).digest('hex')
