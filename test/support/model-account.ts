import type { Role } from '../../src/lib/vocabulary.ts'
import { codeOf } from './authenticator.ts'
import { createTestClock } from './clock.ts'
import { mustHold } from './model.ts'
import { startGoogle } from './push-services.ts'
import { type Answer, startService } from './service.ts'
import { TestSocket } from './socket.ts'
import { waitFor } from './wait.ts'

export const rules = {
  answer: 'each action gets the response that the model expects',
  state: 'an account has the state of the model',
  live: 'sessions that were not ended work',
  ended: 'ended sessions are refused over REST, socket, refresh and push',
  owner: 'only a person who has proved the address acts as its owner',
  shutOut: 'a person who was locked out stays locked out',
  mail: 'a person who can read their mail can log in',
  audit: 'the audit log shows what others did and why a session ended',
}

/** The owner reads two mailboxes and the thief one; the stranger registers with an address of the owner. */
export type Who = 'owner' | 'stranger' | 'thief'
export type Factor = {
  by: Who
  secret: string
  codes: string[]
  madeAt: number
  /** Set up before the address was proved. */
  isProvisional: boolean
}
export type Account = {
  id: string
  address: string
  name: string
  role: Role
  isVerified: boolean
  /** Registered with an address that was not proved since, and not created by the platform. */
  isProvisional: boolean
  /** The thief was the first to prove an address of the account, so it is the thief's. */
  isThiefs: boolean
  isDisabled: boolean
  isRemoved: boolean
  password: string | undefined
  /** The password before this step. */
  passwordBefore: string | undefined
  factor: Factor | undefined
  externalId: string | undefined
}
/** An access token and the refresh token issued with it. */
export type Generation = {
  access: string
  until: number
  refresh: string
  state: 'live' | 'used' | 'replaced'
  parent: Generation | undefined
  usedAt: number
  key: string | undefined
}
export type Session = {
  id: string
  account: Account
  by: Who
  generations: Generation[]
  /** The generation that each holder of a copy would use. */
  copies: Map<Who, Generation>
  /** The holder that refreshed last: user agents differ. */
  agent: Who | undefined
  isEnded: boolean
  confirmedAt: number
  devices: string[]
}
export type LinkKind = 'verify-email' | 'reset-password' | 'change-email' | 'undo-email'
export type Link = {
  kind: LinkKind
  reader: Who
  account: Account
  address: string
  token: string
  madeAt: number
  until: number
  isDead: boolean
}
export type AuditRow = { action: string; actor: string; target: string | null }
type Shown = { shown: Generation; key?: string | undefined }
type OpenSocket = { socket: TestSocket; session: Session; role: Role; until: number }

export const minute = 60_000
export const hour = 60 * minute
export const day = 24 * hour
const accessMilliseconds = 15 * minute
const raceMilliseconds = 10_000
const repeatMilliseconds = day
const linkMilliseconds: Record<LinkKind, number> = {
  'verify-email': day,
  'reset-password': 30 * minute,
  'change-email': day,
  'undo-email': 7 * day,
}
/** Longer than a code of an authenticator: each step has codes of its own. */
const stepMilliseconds = 31_000

export type Stage = Awaited<ReturnType<typeof startStage>>

/** A service shared by many worlds, each with its own people. */
export async function startStage() {
  const clock = createTestClock()
  const google = startGoogle(clock)
  const service = await startService({
    clock,
    listen: true,
    sync: async () => {},
    environment: {
      FCM_SERVICE_ACCOUNT: google.keyFile,
      FCM_URL: google.url,
      RATE_LIMIT_FRAMES: 'off',
    },
  })
  const root = await service.registerAs('admin', 'root')
  const serviceKey = await service.issueKey(['users', 'sessions', 'notifications'])
  let worlds = 0
  let freshUntil = 0

  const call = service.callInProcess

  return {
    clock,
    google,
    service,
    call,
    nextWorld: () => ++worlds,
    rootId: root.id,
    serviceKeyId: serviceKey.id,
    serviceKey: { token: serviceKey.token },
    /** The token of an admin, whose session is confirmed when `isConfirmed`. */
    async admin(isConfirmed = true): Promise<{ token: string }> {
      if (isConfirmed && freshUntil > clock.now()) return root
      const { token } = await service.login(root.email)
      if (!isConfirmed) return { token }
      root.token = token
      await call('POST', '/v1/auth/confirm', { token, body: { password: 'correct horse' } })
      freshUntil = clock.now() + 9 * minute
      return root
    },
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]()
      await google[Symbol.asyncDispose]()
    },
  }
}

export type World = Awaited<ReturnType<typeof beginWorld>>

/** People, their accounts, and the credentials that each person knows. */
export async function beginWorld(stage: Stage) {
  const { clock, service, google, call } = stage
  const n = stage.nextWorld()
  const home: [string, string] = [`ada-${n}@example.com`, `ada-${n}@home.example`]
  const lair = `eve-${n}@example.com`
  const knows: Record<Who, string[]> = { owner: [], stranger: [], thief: [] }
  const accounts: Account[] = []
  const sessions: Session[] = []
  const links: Link[] = []
  const sockets: OpenSocket[] = []
  const seen = new Map<Account, string>()
  /** Sessions that ended earlier; this step must not revive them. */
  let suspects: Session[] = []
  /** Sessions that this step has ended, for the audit log. */
  let justEnded: Session[] = []
  let justDied: Link[] = []
  let actedBy: { id: string; on: string } | undefined
  let names = 0
  let readLines = service.logged.length
  let lastAuditRow = newestAuditRow()

  function newestAuditRow(): number {
    const newest = 'SELECT coalesce(max(rowid), 0) AS row FROM audit_log'
    return service.sqlite.query<{ row: number }, []>(newest).get()?.row ?? 0
  }

  const auditRowsSince = (row: number) =>
    service.sqlite
      .query<AuditRow, [number]>(
        `SELECT action, actor_id AS actor, target_id AS target FROM audit_log
         WHERE rowid > ? AND actor_id IS NOT NULL`,
      )
      .all(row)

  const present = () => accounts.filter(({ isRemoved }) => !isRemoved)
  const at = (address: string) => present().find((account) => account.address === address)
  const isLive = (link: Link) => !link.isDead && link.until > clock.now()
  const liveSessions = (account: Account) =>
    sessions.filter((session) => session.account === account && !session.isEnded)

  const undosOf = (account: Account) =>
    links.filter((link) => link.account === account && link.kind === 'undo-email' && isLive(link))

  function end(session: Session): void {
    if (session.isEnded) return
    session.isEnded = true
    justEnded.push(session)
  }

  function killWhere(mustDie: (link: Link) => boolean): void {
    for (const link of links) {
      if (link.isDead || !mustDie(link)) continue
      link.isDead = true
      justDied.push(link)
    }
  }

  const killLinks = (of: Account, ...kinds: LinkKind[]) =>
    killWhere(({ account, kind }) => account === of && kinds.includes(kind))

  /** Resolves when the newest mails, with their links, have arrived. */
  async function readMail(account: Account): Promise<void> {
    const waiting = service.sqlite.query(
      "SELECT 1 FROM outbox WHERE kind LIKE '%\\_mail' ESCAPE '\\' AND dead_at IS NULL LIMIT 1",
    )
    await waitFor(() => waiting.get() === null, 'mails to be sent')
    service.sqlite.run('DELETE FROM sent_mails') // the mail limit is not part of this model
    for (const line of service.logged.slice(readLines)) keepLink(account, line)
    readLines = service.logged.length
  }

  function keepLink(account: Account, line: string): void {
    const [, page, token] = /\/([a-z-]+)\?lang=\w+#token=([\w-]{43})/.exec(line) ?? []
    if (page === undefined || token === undefined) return
    const kind = page as LinkKind // mails link to these pages only
    const { to: address }: { to: string } = JSON.parse(line)
    const madeAt = clock.now()
    const until = madeAt + linkMilliseconds[kind]
    const reader = address === lair ? 'thief' : 'owner'
    links.push({ kind, reader, account, address, token, madeAt, until, isDead: false })
  }

  function generation(body: Answer['body'], parent?: Generation): Generation {
    const { access_token: access, refresh_token: refresh } = body
    const until = clock.now() + accessMilliseconds
    return { access, until, refresh, parent, state: 'live', usedAt: 0, key: undefined }
  }

  const successorOf = ({ generations }: Session, shown: Generation) =>
    generations.find(({ parent, state }) => parent === shown && state === 'live')

  /** True if a refresh token is accepted: once, or again after a lost response. */
  function isTradable(session: Session, { shown, key }: Shown, who: Who): boolean {
    if (session.isEnded || shown.state === 'live') return !session.isEnded
    const isSame = key !== undefined && key === shown.key && who === session.agent
    const isRecent = clock.now() - shown.usedAt < repeatMilliseconds
    return isSame && isRecent && successorOf(session, shown) !== undefined
  }

  type Trade = { shown: Generation; key: string | undefined; next: Generation }

  function trade(session: Session, who: Who, { shown, key, next }: Trade): void {
    const successor = successorOf(session, shown)
    if (successor) successor.state = 'replaced'
    else Object.assign(shown, { state: 'used', usedAt: clock.now(), key })
    session.generations.push(next)
    session.copies.set(who, next)
    session.agent = who
  }

  const world = {
    ...stage,
    home,
    lair,
    knows,
    accounts,
    sessions,
    links,
    sockets,
    present,
    at,
    isLive,
    liveSessions,
    undosOf,
    end,
    killLinks,
    readMail,
    now: clock.now,
    name: () => `${n}-${++names}`,

    /** Advances the clock, by default enough for the next code of an authenticator. */
    pass(milliseconds = stepMilliseconds) {
      clock.advance(milliseconds)
    },

    newPassword(who: Who): string {
      const password = `password ${n} ${++names}`
      knows[who].push(password)
      return password
    },

    /** Sends a request and checks its status. */
    async ask(
      expected: number,
      method: string,
      path: string,
      options: Parameters<typeof call>[2] = {},
    ): Promise<Answer> {
      const answer = await call(method, path, options)
      const { status, body } = answer
      const summary = `${method} ${path}: ${status} for ${expected} ${body.error?.message ?? ''}`
      mustHold(rules.answer, status === expected, summary)
      return answer
    },

    /** Records an action by someone other than a holder of the account: if it changes anything, the audit log must
     *  name both. */
    acted(id: string, account: Account, change?: () => void) {
      const before = { ...account }
      change?.()
      if (!change || !Bun.deepEquals(before, account)) actedBy = { id, on: account.id }
    },

    addAccount(body: { id: string; email: string }, more: Partial<Account>): Account {
      const account: Account = {
        id: body.id,
        address: body.email,
        name: body.email.slice(0, body.email.indexOf('@')),
        role: 'user',
        isVerified: false,
        isProvisional: false,
        isThiefs: false,
        isDisabled: false,
        isRemoved: false,
        password: undefined,
        passwordBefore: undefined,
        factor: undefined,
        externalId: undefined,
        ...more,
      }
      accounts.push(account)
      return account
    },

    begin(account: Account, by: Who, body: Answer['body']): Session {
      const first = generation(body)
      const [, payload = ''] = first.access.split('.')
      const { sid: id } = JSON.parse(Buffer.from(payload, 'base64url').toString())
      const copies = new Map([[by, first]])
      const generations = [first]
      const unused = { agent: undefined, isEnded: false, confirmedAt: 0, devices: [] }
      const session: Session = { id, account, by, generations, copies, ...unused }
      sessions.push(session)
      return session
    },

    /** An access token of a session that has not expired. */
    usable: ({ generations }: Session) =>
      generations.findLast(({ until }) => until > clock.now())?.access,

    async register(who: Who, email: string): Promise<Session> {
      const display_name = who === 'owner' ? 'Ada' : 'Mallory'
      const password = world.newPassword(who)
      const body = { email, password, display_name }
      const answer = await world.ask(201, 'POST', '/v1/auth/register', { body })
      const made = { name: display_name, password, isProvisional: true }
      const account = world.addAccount(answer.body.user, made)
      await readMail(account)
      return world.begin(account, who, answer.body)
    },

    async addDevice(session: Session, { access }: Generation): Promise<string> {
      const token = `device-${world.name()}`
      const body = { token, platform: 'android' }
      await world.ask(201, 'POST', '/v1/notifications/push-tokens', { token: access, body })
      session.devices.push(token)
      return token
    },

    /** Sends a refresh token.
     *  @returns whether it is accepted */
    async show(session: Session, who: Who, { shown, key }: Shown) {
      const isTraded = isTradable(session, { shown, key }, who)
      const isRace = successorOf(session, shown) && clock.now() - shown.usedAt <= raceMilliseconds
      const { status, body } = await call('POST', '/v1/auth/refresh', {
        body: { refresh_token: shown.refresh },
        headers: { 'user-agent': who, ...(key !== undefined && { 'x-idempotency-key': key }) },
      })
      const rule = isTraded ? rules.live : rules.ended
      mustHold(rule, status === (isTraded ? 200 : 401), { refresh: status, state: shown.state })
      if (isTraded) trade(session, who, { shown, key, next: generation(body, shown) })
      else if (!isRace) end(session)
      return isTraded
    },

    /** Invalidates all former sessions, push tokens, passwords, second factors and links. */
    takeOver(account: Account) {
      for (const session of liveSessions(account)) end(session)
      account.password = undefined
      account.factor = undefined
      account.isProvisional = false
      account.name = account.address.slice(0, account.address.indexOf('@'))
      killLinks(account, 'verify-email', 'reset-password', 'change-email', 'undo-email')
    },

    changeRole(account: Account, role: Role) {
      if (account.role === role) return
      if (role === 'admin') for (const session of liveSessions(account)) end(session)
      account.role = role
    },

    verify(account: Account) {
      killLinks(account, 'verify-email')
      account.isVerified = true
      account.isProvisional = false
      if (account.role === 'user') account.role = 'verified_user'
    },

    unverify(account: Account) {
      account.isVerified = false
      if (account.role === 'verified_user') account.role = 'user'
    },

    disable(account: Account, isDisabled: boolean) {
      if (account.isDisabled && !isDisabled) {
        suspects.push(
          ...sessions.filter((session) => session.account === account && session.isEnded),
        )
      }
      if (isDisabled && !account.isDisabled) {
        for (const session of liveSessions(account)) end(session)
        killLinks(account, 'reset-password', 'change-email')
      }
      account.isDisabled = isDisabled
    },

    async forgot(account: Account) {
      const { address: email, isDisabled } = account
      const known = links.length
      await world.ask(204, 'POST', '/v1/auth/password/forgot', { body: { email } })
      await readMail(account)
      mustHold(
        rules.mail,
        links.length - known === (isDisabled ? 0 : 1),
        'a link to a new password',
      )
    },

    async reset({ account, reader, token }: Link) {
      const password = world.newPassword(reader)
      await world.ask(204, 'POST', '/v1/auth/password/reset', { body: { token, password } })
      if (account.isProvisional) world.takeOver(account)
      if (account.factor?.isProvisional) account.factor = undefined
      for (const session of liveSessions(account)) end(session)
      killLinks(account, 'reset-password', 'change-email', 'verify-email')
      account.password = password
      world.verify(account)
    },

    async undo({ account, address, token, madeAt, until }: Link) {
      await world.ask(204, 'POST', '/v1/auth/email/undo', { body: { token } })
      account.address = address
      account.password = undefined
      if (account.factor && account.factor.madeAt >= madeAt) account.factor = undefined
      for (const session of liveSessions(account)) end(session)
      killLinks(account, 'verify-email', 'reset-password', 'change-email')
      world.killUndo(account, { address, until })
      world.verify(account)
      await readMail(account)
    },

    killUndo(account: Account, change: { address: string; until?: number }) {
      const { address, until = Number.POSITIVE_INFINITY } = change
      killWhere((link) => {
        const isOne = link.account === account && link.kind === 'undo-email'
        return isOne && (link.address === address || link.until >= until)
      })
    },

    /** True if an address belongs to another account, or would after an undo. */
    isTaken(address: string, account?: Account): boolean {
      const owner = at(address)
      if (owner && owner !== account) return true
      return links.some(
        (link) =>
          link.kind === 'undo-email' &&
          link.address === address &&
          link.account !== account &&
          isLive(link),
      )
    },

    roleOf: (role: Role, { isVerified }: Account): Role =>
      role === 'user' && isVerified ? 'verified_user' : role,

    remove(account: Account) {
      world.takeOver(account)
      account.isRemoved = true
    },

    async openSocket(session: Session, { access, until }: Generation) {
      const url = `${service.base.replace('http', 'ws')}/v1/chat/ws?token=${access}`
      const { role } = session.account
      sockets.push({ socket: await TestSocket.open(url), session, role, until })
    },

    /** The current code of a second factor. */
    codeOf: ({ secret }: Factor) => codeOf(secret, clock.now()),

    /** Notifies an account over the service feed.
     *  @returns the devices that got it */
    async notify({ id }: Account): Promise<string[]> {
      const before = google.sends.length
      const body = { user_id: id, type: 'payment_captured' }
      await world.ask(201, 'POST', '/v1/service/notifications', { ...stage.serviceKey, body })
      const waiting = service.sqlite.query("SELECT 1 FROM outbox WHERE kind LIKE '%push' LIMIT 1")
      await waitFor(() => waiting.get() === null, 'pushes to be sent')
      const sent = google.sends.slice(before) as { message: { token: string } }[]
      return sent.map(({ message }) => message.token).sort()
    },

    devicesOf: (account: Account) =>
      account.isDisabled
        ? []
        : liveSessions(account)
            .flatMap(({ devices }) => devices)
            .sort(),

    /** True if the model of an account has changed since the last call. */
    hasChanged(account: Account): boolean {
      const open = liveSessions(account).map(({ id, devices }) => [id, ...devices])
      const now = JSON.stringify([account, open])
      const isOther = seen.get(account) !== now
      seen.set(account, now)
      return isOther
    },

    /** The sessions that the step has ended or must not have revived, other actors, and the new rows of the audit
     *  log. */
    takeStep() {
      const step = {
        suspects: [...suspects, ...justEnded],
        ended: justEnded,
        dead: justDied,
        actedBy,
        rows: auditRowsSince(lastAuditRow),
      }
      lastAuditRow = newestAuditRow()
      suspects = []
      justEnded = []
      justDied = []
      actedBy = undefined
      return step
    },

    async [Symbol.asyncDispose]() {
      for (const { socket } of sockets) socket.close()
    },
  }
  return world
}

export const linkPaths: Record<LinkKind, string> = {
  'verify-email': '/v1/auth/verify-email',
  'reset-password': '/v1/auth/password/reset',
  'change-email': '/v1/auth/email/confirm',
  'undo-email': '/v1/auth/email/undo',
}
