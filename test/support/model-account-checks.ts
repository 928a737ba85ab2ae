import { Broken, mustHold } from './model.ts'
import {
  type Account,
  type Link,
  linkPaths,
  rules,
  type Session,
  type World,
} from './model-account.ts'
import type { TestSocket } from './socket.ts'

/** Compares the accounts changed by a step with the model. */
export async function check(world: World): Promise<void> {
  const step = world.takeStep()
  checkAudit(step)
  for (const account of world.present()) {
    if (world.hasChanged(account)) await checkAll(world, account)
  }
  for (const session of step.suspects) await checkSession(world, session)
  for (const link of step.dead) await tryLink(world, link)
  await checkSockets(world)
  world.pass()
}

async function checkAll(world: World, account: Account) {
  await checkAccount(world, account)
  await checkPassword(world, account)
  await checkWithin(world, account)
  for (const session of world.liveSessions(account)) await checkSession(world, session)
}

/** Reasons for the end of a session. */
const ends = new Set([
  'account_adopted',
  'email_change_undone',
  'logged_out',
  'password_changed',
  'password_reset',
  'refresh_token_reused',
  'role_changed',
  'session_ended',
  'user_deleted',
  'user_disabled',
])

function checkAudit({ ended, actedBy, rows }: ReturnType<World['takeStep']>) {
  const unaudited = ended.filter(
    ({ id, account }) =>
      !rows.some(
        ({ target, action }) => ends.has(action) && (target === id || target === account.id),
      ),
  )
  mustHold(rules.audit, unaudited.length === 0, { ended: unaudited.length, rows })
  const isAudited =
    !actedBy || rows.some(({ actor, target }) => actor === actedBy.id && target === actedBy.on)
  mustHold(rules.audit, isAudited, { actedBy, rows })
}

async function checkAccount(world: World, account: Account) {
  const { body } = await world.ask(200, 'GET', `/v1/admin/users/${account.id}`, await world.admin())
  const { email, display_name, role, email_verified, disabled, totp, external_id } = body
  const found = { email, display_name, role, email_verified, disabled, totp, external_id }
  const expected = {
    email: account.address,
    display_name: account.name,
    role: account.role,
    email_verified: account.isVerified,
    disabled: account.isDisabled,
    totp: account.factor !== undefined,
    external_id: account.externalId ?? null,
  }
  mustHold(rules.state, Bun.deepEquals(found, expected), { found, expected })
}

/** The former password must be refused. */
async function checkPassword(world: World, account: Account) {
  const { address, password, passwordBefore } = account
  account.passwordBefore = password
  if (passwordBefore === undefined || passwordBefore === password) return
  await mustBeRefused(world, address, passwordBefore)
}

async function mustBeRefused(world: World, email: string, password: string) {
  const { status, headers } = await world.call('POST', '/v1/auth/login', {
    body: { email, password },
  })
  // Only the right password leads to a request for a code.
  const isRefused = status === 401 && headers.get('x-error-reason') === null
  mustHold(rules.shutOut, isRefused, `a password of before: ${status}`)
}

/** Lists the sessions of an account through one of them, and checks its rights. */
async function checkWithin(world: World, account: Account) {
  const open = world.liveSessions(account)
  const token = open.map((session) => world.usable(session)).find((it) => it !== undefined)
  if (token === undefined) return
  const { total } = (await world.ask(200, 'GET', '/v1/auth/sessions', { token })).body.pagination
  mustHold(rules.ended, total === open.length, { sessions: total, expected: open.length })
  const isAdmin = account.role === 'admin'
  await world.ask(isAdmin ? 200 : 403, 'GET', `/v1/admin/users/${account.id}`, { token })
}

async function checkSession(world: World, session: Session) {
  const token = world.usable(session)
  if (token === undefined) return
  const path = '/v1/notifications/push-tokens?per_page=100'
  const { status, body } = await world.call('GET', path, { token })
  const rule = session.isEnded ? rules.ended : rules.live
  mustHold(rule, status === (session.isEnded ? 401 : 200), `the ${session.by} gets ${status}`)
  if (session.isEnded) return
  const devices: string[] = body.data.map((device: { token: string }) => device.token)
  const expected = world.devicesOf(session.account)
  mustHold(rules.ended, Bun.deepEquals(devices.sort(), expected), { devices, expected })
}

async function checkSockets(world: World) {
  for (const open of world.sockets.splice(0)) {
    const { socket, session, role, until } = open
    const isOver = session.isEnded || session.account.role !== role
    // A socket with an expired token is closed some time later.
    const isExpired = until <= world.now()
    if (!isExpired) await mustBe(isOver ? 4403 : 'open', socket)
    if (isOver || isExpired) socket.close()
    else world.sockets.push(open)
  }
}

async function mustBe(expected: number | 'open', socket: TestSocket) {
  const state = await stateOf(socket)
  const rule = expected === 'open' ? rules.live : rules.ended
  mustHold(rule, state === expected, `a socket is ${state}`)
}

/** `open` when it answers, else its close code. */
async function stateOf(socket: TestSocket): Promise<number | 'open'> {
  if (!socket.isOpen) return socket.closed
  socket.send({ type: 'ping' })
  const pong = socket.next('pong').then(() => 'open' as const)
  pong.catch(() => {}) // a closing socket sends no pong
  return Promise.race([socket.closed, pong])
}

/** The owner recovers the account by mail; then all former credentials are tried again. */
export async function conclude(world: World): Promise<void> {
  for (const account of world.present()) await checkAll(world, account)
  for (const account of world.present()) await rescue(world, account)
  const rescued: Session[] = []
  for (const address of world.home) rescued.push(...(await comeIn(world, address)))
  await tryEverything(world)
  for (const session of rescued) await use(world, session)
}

async function tryEverything(world: World) {
  for (const session of world.sessions) if (session.isEnded) await trySession(world, session)
  for (const link of world.links) await tryLink(world, link)
  const passwords = [...world.knows.stranger, ...world.knows.thief]
  for (const email of world.home) {
    for (const password of passwords) await mustBeRefused(world, email, password)
  }
}

/** An admin enables the account again. The oldest link of the owner reverts what a thief has moved, or could move. */
async function rescue(world: World, account: Account) {
  if (account.isDisabled) {
    const patch = { ...(await world.admin()), body: { disabled: false } }
    await world.ask(200, 'PATCH', `/v1/admin/users/${account.id}`, patch)
    world.disable(account, false)
    for (const session of world.takeStep().suspects) await checkSession(world, session)
  }
  const undos = world.undosOf(account)
  const first = undos.find(({ reader }) => reader === 'owner')
  const isAway = account.address === world.lair || undos.some(({ reader }) => reader === 'thief')
  if (first && (isAway || undos.length > 1)) await world.undo(first)
}

/** @returns the session of the owner; none when nothing has happened, or the address is reserved for another account */
async function comeIn(world: World, address: string): Promise<Session[]> {
  const account = world.at(address)
  if (!account) {
    const isFree = world.accounts.some((it) => it.address === address) && !world.isTaken(address)
    return isFree ? [await world.register('owner', address)] : []
  }
  await world.forgot(account)
  const link = world.links.at(-1)
  if (!link) throw new Broken(rules.mail, 'no link to a new password')
  await world.reset(link)
  const { factor } = account
  if (factor && factor.by !== 'owner') {
    mustHold(rules.mail, !factor.isProvisional, 'the code of a stranger is asked for')
    await world.ask(204, 'DELETE', `/v1/admin/users/${account.id}/totp`, await world.admin())
    account.factor = undefined
  }
  const login = (code?: string) => {
    const body = { email: address, password: account.password, code }
    return world.call('POST', '/v1/auth/login', { body })
  }
  const listed = account.factor?.codes.shift()
  if (listed !== undefined) await login(listed)
  const again = listed === undefined ? undefined : await login(listed)
  mustHold(rules.shutOut, again?.status !== 200, 'a recovery code works twice')
  const { status, body } = await login(account.factor && world.codeOf(account.factor))
  mustHold(rules.mail, status === 200, { login: status })
  return [world.begin(account, 'owner', body)]
}

async function trySession(world: World, { by, generations }: Session) {
  for (const { access: token, until, refresh: refresh_token } of generations) {
    const { status } = await world.call('POST', '/v1/auth/refresh', { body: { refresh_token } })
    mustHold(rules.shutOut, status === 401, `a refresh token of the ${by}: ${status}`)
    if (until <= world.now()) continue
    const answer = await world.call('GET', '/v1/users/me', { token })
    mustHold(rules.shutOut, answer.status === 401, `an access token of the ${by}`)
  }
}

async function tryLink(world: World, link: Link) {
  const { kind, reader, token, account } = link
  if (world.isLive(link)) {
    const isAtHome = world.home.includes(account.address)
    const isTheirs = reader === 'owner' || !isAtHome || account.isThiefs
    mustHold(rules.shutOut, isTheirs, `a link of the ${reader} works: ${kind}`)
    return
  }
  const body = { token, password: 'correct horse' }
  const { status } = await world.call('POST', linkPaths[kind], { body })
  mustHold(rules.shutOut, status === 400, `a link of before, ${kind}: ${status}`)
}

/** The owner has all features, and no one else has access. */
async function use(world: World, session: Session) {
  const [tokens] = session.generations
  if (!tokens) return
  const others = await world.notify(session.account)
  mustHold(rules.owner, others.length === 0, { notified: others })
  const device = await world.addDevice(session, tokens)
  const notified = await world.notify(session.account)
  mustHold(rules.owner, Bun.deepEquals(notified, [device]), { notified, device })
  await world.openSocket(session, tokens)
  await checkSockets(world)
  await world.show(session, 'owner', { shown: tokens })
}
