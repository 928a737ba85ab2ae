import { mustHold, type Random } from './model.ts'
import {
  type Account,
  day,
  hour,
  type Link,
  type LinkKind,
  linkPaths,
  minute,
  rules,
  type Session,
  type Who,
  type World,
} from './model-account.ts'
import { check, conclude } from './model-account-checks.ts'

type Act = (world: World, random: Random) => Promise<string | undefined>

const everybody = ['owner', 'stranger', 'thief'] as const
const one = <T>(random: Random, values: readonly T[]) =>
  values.length === 0 ? undefined : random.pick(values)

/** Picks a valid session, and tokens of it that a person has. */
function usable(world: World, random: Random, whos: readonly Who[] = everybody) {
  const found = whos.map((who) =>
    world.sessions.flatMap((session) => {
      const copy = session.copies.get(who)
      const isUsable = !session.isEnded && copy && copy.until > world.now()
      return isUsable ? [{ session, who, copy, token: copy.access }] : []
    }),
  )
  const some = one(
    random,
    found.filter((sessions) => sessions.length > 0),
  )
  return some && one(random, some)
}

/** Picks a proof of identity: a known password, or a confirmation that is recent enough. */
function proofOf(
  { session, who }: { session: Session; who: Who },
  { world, random, minutes = 10 }: { world: World; random: Random; minutes?: number },
) {
  const { account, confirmedAt } = session
  const password = random.next() < 0.7 ? one(random, passwordsOf(world, who, account)) : undefined
  if (password !== undefined) {
    return { password, refusal: password === account.password ? undefined : 401 }
  }
  const isConfirmed = confirmedAt > world.now() - minutes * minute
  return { password, refusal: isConfirmed ? undefined : 403 }
}

/** Most actions concern the first address. */
const homeOf = ({ home }: World, random: Random) =>
  random.pick([home[0], home[0], home[0], home[1]])

/** The right password is picked more often than former ones. */
function passwordsOf({ knows }: World, who: Who, { password }: Account): string[] {
  const isKnown = password !== undefined && knows[who].includes(password)
  return isKnown ? [password, password, password, ...knows[who]] : knows[who]
}

/** A code of a person's second factor: from the authenticator, or a recovery code. */
function codeFrom(world: World, { account, who }: { account: Account; who: Who }, random: Random) {
  const { factor } = account
  if (factor?.by !== who) return undefined
  const listed = random.next() < 0.5 ? factor.codes[0] : undefined
  return listed === undefined ? { code: world.codeOf(factor) } : { code: listed, listed }
}

function linkTo(world: World, random: Random, kind: LinkKind): Link | undefined {
  return one(
    random,
    world.links.filter((link) => link.kind === kind && world.isLive(link)),
  )
}

/** Follows the link to a new address. */
async function takeAddress(world: World, link: Link): Promise<string> {
  const { account, address } = link
  const { address: former, isProvisional, isVerified: wasVerified } = account
  const isTaken = world.isTaken(address, account)
  const body = { token: link.token }
  await world.ask(isTaken ? 409 : 200, 'POST', linkPaths[link.kind], { body })
  if (isTaken) return `the ${link.reader} cannot take ${address}`
  const [way] = world.undosOf(account).filter((undo) => undo.address === address)
  const known = world.links.length
  if (isProvisional) account.isThiefs = link.reader === 'thief'
  account.address = address
  world.killLinks(account, 'verify-email', 'reset-password', 'change-email')
  world.killUndo(account, way ?? { address })
  world.verify(account)
  await world.readMail(account)
  // An undo reverts later changes; an unverified address cannot be restored.
  const isUndoable = world.links.length > known
  mustHold(rules.answer, isUndoable === (wasVerified && !way), 'a link to undo')
  return `the ${link.reader} takes ${address} in the place of ${former}`
}

const byAdmin =
  (
    what: string,
    method: 'POST' | 'DELETE',
    path: string,
    change: (world: World, account: Account) => void | Promise<void>,
  ): Act =>
  async (world, random) => {
    const account = one(random, world.present())
    if (!account) return undefined
    await world.ask(204, method, `/v1/admin/users/${account.id}${path}`, await world.admin())
    await change(world, account)
    return `an admin ${what} of ${account.address}`
  }

const actions: Record<string, Act> = {
  async register(world, random) {
    const who = random.pick(['owner', 'stranger'] as const)
    const email = homeOf(world, random)
    if (!world.isTaken(email)) {
      await world.register(who, email)
      return `the ${who} registers ${email}`
    }
    if (world.at(email) && random.next() < 0.8) return undefined
    await world.ask(409, 'POST', '/v1/auth/register', {
      body: { email, password: 'correct horse' },
    })
    return `the ${who} cannot register ${email}`
  },

  async verify(world, random) {
    const link = linkTo(world, random, 'verify-email')
    if (!link) return undefined
    const { account } = link
    await world.ask(200, 'POST', linkPaths[link.kind], { body: { token: link.token } })
    world.verify(account)
    return `the ${link.reader} verifies ${account.address}`
  },

  async adopt(world, random) {
    const email = homeOf(world, random)
    const former = world.at(email)
    const isNew = former ? former.isProvisional && former.role !== 'admin' : !world.isTaken(email)
    const external_id = world.name()
    const body = { email, external_id, email_verified: random.next() < 0.5 }
    const answer = await world.ask(isNew ? 201 : 409, 'POST', '/v1/service/users', {
      ...world.serviceKey,
      body,
    })
    if (!isNew) return `the platform cannot bring ${email}`
    if (former) world.remove(former)
    const account = world.addAccount(answer.body, { externalId: external_id })
    if (body.email_verified) world.verify(account)
    world.acted(world.serviceKeyId, account)
    return `the platform brings ${email}${body.email_verified ? ', verified' : ''}`
  },

  async patchByPlatform(world, random) {
    const account = one(random, world.present())
    if (!account) return undefined
    const body = random.pick([
      { external_id: world.name() },
      { email_verified: true },
      { role: 'host' as const },
      { role: 'user' as const },
    ])
    const isProof = body.external_id !== undefined || body.email_verified !== undefined
    const isAdoption = isProof && account.isProvisional
    const isVerification = body.email_verified !== undefined && !account.isVerified
    const isOfAccess = body.role !== undefined || isAdoption || isVerification
    const isRefused = account.role === 'admin' && isOfAccess
    const status = isRefused ? 403 : 200
    const path = `/v1/service/users/${account.id}`
    await world.ask(status, 'PATCH', path, { ...world.serviceKey, body })
    if (isRefused)
      return `the platform cannot change ${account.address} ${JSON.stringify(body)}, an admin`
    world.acted(world.serviceKeyId, account, () => {
      if (isAdoption) world.takeOver(account)
      if (body.external_id) account.externalId = body.external_id
      if (body.email_verified) world.verify(account)
      if (body.role) world.changeRole(account, world.roleOf(body.role, account))
    })
    return `the platform changes ${account.address} ${JSON.stringify(body)}`
  },

  async moveByPlatform(world, random) {
    const held = world.present().filter(({ address }) => world.home.includes(address))
    const account = one(random, held)
    const email = world.home.find((address) => address !== account?.address)
    if (!account || email === undefined) return undefined
    const former = world.at(email)
    const isFree = former
      ? former.isProvisional && former.role !== 'admin'
      : !world.isTaken(email, account)
    const refusal = account.role === 'admin' ? 403 : 409
    const isMoved = account.role !== 'admin' && isFree
    const body = { email, ...(random.next() < 0.5 && { email_verified: true }) }
    await world.ask(isMoved ? 200 : refusal, 'PATCH', `/v1/service/users/${account.id}`, {
      ...world.serviceKey,
      body,
    })
    if (!isMoved) return `the platform cannot move ${account.address} to ${email}`
    if (former) world.remove(former)
    const from = account.address
    world.acted(world.serviceKeyId, account, () => {
      if (body.email_verified && account.isProvisional) world.takeOver(account)
      account.address = email
      world.killLinks(account, 'verify-email', 'reset-password', 'change-email', 'undo-email')
      if (body.email_verified) world.verify(account)
      else world.unverify(account)
    })
    await world.readMail(account)
    return `the platform moves ${from} to ${email}`
  },

  async removeByPlatform(world, random) {
    const account = one(random, world.present())
    if (!account || random.next() < 0.5) return undefined
    const isRefused = account.role === 'admin'
    const path = `/v1/service/users/${account.id}`
    await world.ask(isRefused ? 403 : 204, 'DELETE', path, world.serviceKey)
    if (isRefused) return `the platform cannot remove ${account.address}`
    world.acted(world.serviceKeyId, account, () => world.remove(account))
    return `the platform removes ${account.address}`
  },

  async logOutByPlatform(world, random) {
    const account = one(random, world.present())
    if (!account) return undefined
    const isRefused = account.role === 'admin'
    const path = `/v1/service/users/${account.id}/sessions`
    await world.ask(isRefused ? 403 : 204, 'DELETE', path, world.serviceKey)
    if (isRefused) return `the platform cannot log ${account.address} out`
    for (const session of world.liveSessions(account)) world.end(session)
    world.acted(world.serviceKeyId, account)
    return `the platform ends the sessions of ${account.address}`
  },

  async openSession(world, random) {
    const account = one(
      random,
      world.present().filter((it) => it.externalId !== undefined || it.role === 'admin'),
    )
    if (!account) return undefined
    const { role, isDisabled, address } = account
    const isRefused = role === 'admin' || isDisabled
    const path = `/v1/service/users/${account.id}/sessions`
    const { body } = await world.ask(isRefused ? 403 : 201, 'POST', path, world.serviceKey)
    if (isRefused) return `the platform cannot log the owner of ${address} in`
    world.begin(account, 'owner', body)
    world.acted(world.serviceKeyId, account)
    return `the platform logs the owner of ${address} in`
  },

  async login(world, random) {
    const who = random.pick(everybody)
    const account = one(random, world.present())
    const password = account && one(random, passwordsOf(world, who, account))
    if (!account || password === undefined) return undefined
    const { address: email, factor, isDisabled } = account
    const given = codeFrom(world, { account, who }, random)
    const isIn = password === account.password && !isDisabled && (!factor || given !== undefined)
    const body = { email, password, ...(given && { code: given.code }) }
    const answer = await world.ask(isIn ? 200 : 401, 'POST', '/v1/auth/login', { body })
    if (!isIn) return `the ${who} cannot log in as ${email}`
    world.begin(account, who, answer.body)
    if (!given) return `the ${who} logs in as ${email}`
    await world.ask(401, 'POST', '/v1/auth/login', { body })
    if (given.listed === undefined) return `the ${who} logs in as ${email} with a code`
    account.factor?.codes.shift()
    return `the ${who} logs in as ${email} with a recovery code`
  },

  async steal(world, random) {
    const session = one(
      random,
      world.sessions.filter(({ by, isEnded }) => by === 'owner' && !isEnded),
    )
    const copy = session?.copies.get('owner')
    if (session && copy && random.next() < 0.6) {
      session.copies.set('thief', copy)
      return `the thief copies the tokens of a session of ${session.account.address}`
    }
    const password = one(random, world.knows.owner)
    if (password === undefined || world.knows.thief.includes(password)) return undefined
    world.knows.thief.push(password)
    return 'the thief learns a password of the owner'
  },

  async refresh(world, random) {
    const session = one(
      random,
      world.sessions.filter(({ isEnded }) => !isEnded),
    )
    const held = session && one(random, [...session.copies])
    if (!session || !held) return undefined
    const [who, copy] = held
    // After a lost response the same request is usually repeated.
    const another = random.next() < 0.7 ? world.name() : undefined
    const key = random.next() < 0.7 ? (copy.key ?? another) : another
    const state = copy.state
    const isTraded = await world.show(session, who, { shown: copy, key })
    const isLost = isTraded && random.next() < 0.3
    if (isLost) session.copies.set(who, copy)
    const ending = isTraded ? (isLost ? ' and loses the answer' : '') : ' in vain'
    return `the ${who} shows a refresh token that is ${state}${ending}`
  },

  async replay(world, random) {
    const session = one(random, world.sessions)
    const shown = session && one(random, session.generations)
    if (!session || !shown || shown.state === 'live') return undefined
    const key = random.next() < 0.5 ? shown.key : undefined
    await world.show(session, 'thief', { shown, key })
    return `an old refresh token of ${session.account.address} is shown again`
  },

  async race(world, random) {
    const held = usable(world, random, ['owner'])
    if (held?.copy.state !== 'live') return undefined
    const { session, who, copy } = held
    await world.show(session, who, { shown: copy })
    await world.show(session, who, { shown: copy })
    return `two tabs of ${session.account.address} refresh at once`
  },

  async reuseAtOnce(world, random) {
    const held = usable(world, random)
    if (held?.copy.state !== 'live') return undefined
    const { session, who, copy } = held
    await world.show(session, who, { shown: copy })
    await world.show(session, who, { shown: session.copies.get(who) ?? copy })
    await world.show(session, who, { shown: copy })
    return `the ${who} refreshes twice and shows the first token again`
  },

  async logOut(world, random) {
    const held = usable(world, random)
    if (!held) return undefined
    const { session, who, copy, token } = held
    // Another session then shows whether the phone is gone.
    const hasPhone = world.liveSessions(session.account).length > 1
    if (hasPhone) await world.addDevice(session, copy)
    const body = { refresh_token: copy.refresh }
    await world.ask(204, 'POST', '/v1/auth/logout', { token, body })
    world.end(session)
    return `the ${who} logs out${hasPhone ? ' a phone' : ''} of ${session.account.address}`
  },

  async endSession(world, random) {
    const held = usable(world, random)
    const ended = held && one(random, world.liveSessions(held.session.account))
    if (!held || !ended) return undefined
    await world.ask(204, 'DELETE', `/v1/auth/sessions/${ended.id}`, { token: held.token })
    world.end(ended)
    return `the ${held.who} ends a session of the ${ended.by}`
  },

  async changePassword(world, random) {
    const held = usable(world, random)
    if (!held) return undefined
    const { session, who, token } = held
    const { account } = session
    const { password: current_password, refusal } = proofOf(held, { world, random })
    const new_password = world.newPassword(who)
    const body = { current_password, new_password }
    const { status } = await world.call('POST', '/v1/auth/password/change', { token, body })
    if (status === 429) return undefined
    mustHold(rules.answer, status === (refusal ?? 204), { change: status, refusal })
    if (refusal) return `the ${who} cannot change the password of ${account.address}: ${refusal}`
    for (const other of world.liveSessions(account)) if (other !== session) world.end(other)
    account.password = new_password
    world.killLinks(account, 'reset-password', 'change-email')
    return `the ${who} changes the password of ${account.address}`
  },

  async enrol(world, random) {
    const held = usable(world, random)
    if (!held) return undefined
    const { session, who, token } = held
    const { account } = session
    const { password, refusal } = proofOf(held, { world, random, minutes: 5 })
    const expected = refusal ?? (account.factor ? 409 : 200)
    const body = { password }
    const answer = await world.ask(expected, 'POST', '/v1/auth/totp', { token, body })
    if (expected !== 200) return `the ${who} cannot set a second factor up: ${expected}`
    const factor = {
      by: who,
      secret: answer.body.secret,
      codes: [],
      madeAt: world.now(),
      isProvisional: account.isProvisional,
    }
    const confirmed = await world.ask(200, 'POST', '/v1/auth/totp/confirm', {
      token,
      body: { code: world.codeOf(factor) },
    })
    account.factor = { ...factor, codes: confirmed.body.recovery_codes }
    return `the ${who} sets a second factor up for ${account.address}`
  },

  async renewCodes(world, random) {
    const held = usable(world, random)
    if (!held?.session.account.factor) return undefined
    const { session, who, token } = held
    const { factor, address: email, password: secret } = session.account
    const { password, refusal } = proofOf(held, { world, random, minutes: 5 })
    const isTheirs = factor?.by === who
    const expected = refusal ?? (isTheirs ? 200 : 401)
    const code = factor && isTheirs ? world.codeOf(factor) : '000000'
    const path = '/v1/auth/totp/recovery-codes'
    const answer = await world.ask(expected, 'POST', path, { token, body: { password, code } })
    if (!factor || expected !== 200) return `the ${who} cannot renew recovery codes: ${expected}`
    const [former] = factor.codes
    factor.codes = answer.body.recovery_codes
    if (secret !== undefined && former !== undefined) {
      const body = { email, password: secret, code: former }
      await world.ask(401, 'POST', '/v1/auth/login', { body })
    }
    return `the ${who} renews the recovery codes of ${email}`
  },

  async dropFactor(world, random) {
    const held = usable(world, random)
    if (!held?.session.account.factor) return undefined
    const { session, who, token } = held
    const { account } = session
    const { password, refusal } = proofOf(held, { world, random, minutes: 5 })
    const given = codeFrom(world, { account, who }, random)
    const expected = refusal ?? (given ? 204 : 401)
    await world.ask(expected, 'DELETE', '/v1/auth/totp', {
      token,
      body: { password, code: given?.code ?? '000000' },
    })
    if (expected !== 204) return `the ${who} cannot remove the second factor: ${expected}`
    account.factor = undefined
    return `the ${who} removes the second factor of ${account.address}`
  },

  async confirm(world, random) {
    const held = usable(world, random)
    const account = held?.session.account
    if (!held || !account) return undefined
    const { session, who, token } = held
    const isByCode = account.factor?.by === who && random.next() < 0.5
    const password = one(random, passwordsOf(world, who, account))
    if (!isByCode && password === undefined) return undefined
    const body = isByCode && account.factor ? { code: world.codeOf(account.factor) } : { password }
    const isRight = isByCode || password === account.password
    await world.ask(isRight ? 204 : 401, 'POST', '/v1/auth/confirm', { token, body })
    if (isRight) session.confirmedAt = world.now()
    return `the ${who} ${isRight ? 'confirms' : 'cannot confirm'} a session of ${account.address}`
  },

  async askForAddress(world, random) {
    const held = usable(world, random)
    if (!held) return undefined
    const { session, who, token } = held
    const { account } = session
    const addresses = who === 'owner' ? world.home : [world.lair]
    const others = addresses.filter((address) => address !== account.address)
    const new_email = one(random, others)
    if (new_email === undefined) return undefined
    const { password, refusal } = proofOf(held, { world, random })
    const { status } = await world.call('POST', '/v1/auth/email/change', {
      token,
      body: { password, new_email },
    })
    if (status === 429) return undefined
    mustHold(rules.answer, status === (refusal ?? 204), { change: status, refusal })
    if (refusal) return `the ${who} cannot ask for another address: ${refusal}`
    world.killLinks(account, 'change-email')
    await world.readMail(account)
    const link = world.links.at(-1)
    if (link?.kind === 'change-email' && world.isLive(link) && random.next() < 0.6) {
      return takeAddress(world, link)
    }
    return `the ${who} asks for ${new_email} in the place of ${account.address}`
  },

  async confirmAddress(world, random) {
    const link = linkTo(world, random, 'change-email')
    return link && takeAddress(world, link)
  },

  async undo(world, random) {
    const link = linkTo(world, random, 'undo-email')
    if (!link) return undefined
    // A new second factor before the undo, as by a thief.
    const enrolled = random.next() < 0.8 ? await actions['enrol']?.(world, random) : undefined
    await world.undo(link)
    return `${enrolled ? `${enrolled}; ` : ''}the ${link.reader} undoes the change of ${link.address}`
  },

  async forget(world, random) {
    const account = one(random, world.present())
    if (!account) return undefined
    await world.forgot(account)
    return `somebody has forgotten the password of ${account.address}`
  },

  async reset(world, random) {
    const link = linkTo(world, random, 'reset-password')
    if (!link) return undefined
    await world.reset(link)
    return `the ${link.reader} resets the password of ${link.address}`
  },

  async removeOneself(world, random) {
    const held = usable(world, random)
    if (!held) return undefined
    const { session, who, token } = held
    const { password, refusal } = proofOf(held, { world, random })
    await world.ask(refusal ?? 204, 'DELETE', '/v1/users/me', { token, body: { password } })
    if (refusal) return `the ${who} cannot remove ${session.account.address}: ${refusal}`
    world.remove(session.account)
    return `the ${who} removes ${session.account.address}`
  },

  async addDevice(world, random) {
    const held = usable(world, random)
    if (!held) return undefined
    await world.addDevice(held.session, held.copy)
    return `the ${held.who} registers a phone with ${held.session.account.address}`
  },

  async openSocket(world, random) {
    const held = usable(world, random)
    if (!held) return undefined
    await world.openSocket(held.session, held.copy)
    return `the ${held.who} opens a socket as ${held.session.account.address}`
  },

  async push(world, random) {
    const account = one(random, world.present())
    if (!account) return undefined
    const notified = await world.notify(account)
    const expected = world.devicesOf(account)
    mustHold(rules.ended, Bun.deepEquals(notified, expected), { notified, expected })
    return `the platform notifies ${account.address}`
  },

  async changeName(world, random) {
    const held = usable(world, random)
    if (!held) return undefined
    const { session, who, token } = held
    const display_name = `${who} ${world.name()}`
    await world.ask(200, 'PATCH', '/v1/users/me', { token, body: { display_name } })
    session.account.name = display_name
    return `the ${who} renames ${session.account.address}`
  },

  async changeByAdmin(world, random) {
    const account = one(random, world.present())
    if (!account) return undefined
    const body = random.pick([
      { role: 'admin' as const },
      { role: 'host' as const },
      { role: 'user' as const },
      { email_verified: true },
      { email_verified: false },
      { disabled: true },
      { disabled: false },
    ])
    const admin = await world.admin()
    await world.ask(200, 'PATCH', `/v1/admin/users/${account.id}`, { ...admin, body })
    world.acted(world.rootId, account, () => {
      if (body.email_verified && account.isProvisional) world.takeOver(account)
      if (body.email_verified) world.verify(account)
      if (body.email_verified === false) world.unverify(account)
      if (body.role) world.changeRole(account, world.roleOf(body.role, account))
      if (body.disabled !== undefined) world.disable(account, body.disabled)
    })
    return `an admin changes ${account.address} ${JSON.stringify(body)}`
  },

  endSessionsByAdmin: byAdmin('ends the sessions', 'DELETE', '/sessions', (world, account) => {
    world.acted(world.rootId, account)
    for (const session of world.liveSessions(account)) world.end(session)
  }),
  dropFactorByAdmin: byAdmin('takes the second factor', 'DELETE', '/totp', (world, account) => {
    if (account.factor) world.acted(world.rootId, account)
    account.factor = undefined
  }),
  mailReset: byAdmin('mails a reset', 'POST', '/password-reset', (world, account) => {
    world.acted(world.rootId, account)
    return world.readMail(account)
  }),
  removeByAdmin: byAdmin('removes the account', 'DELETE', '', (world, account) => {
    world.acted(world.rootId, account)
    world.remove(account)
  }),

  async forgetToConfirm(world, random) {
    const account = one(random, world.present())
    if (!account) return undefined
    const path = random.pick(['/sessions', '/totp', ''])
    const admin = await world.admin(false)
    await world.ask(403, 'DELETE', `/v1/admin/users/${account.id}${path}`, admin)
    return `an admin who has not confirmed does nothing to ${account.address}`
  },

  async wait(world, random) {
    const milliseconds = random.pick([2 * minute, 2 * minute, 12 * minute, 2 * hour, day])
    world.pass(milliseconds)
    return `${milliseconds / minute} minutes pass`
  },
}

const weights = {
  register: 8,
  verify: 4,
  login: 8,
  steal: 4,
  enrol: 5,
  dropFactor: 3,
  changePassword: 4,
  confirm: 2,
  askForAddress: 6,
  confirmAddress: 8,
  reset: 4,
  refresh: 4,
  replay: 2,
  logOut: 4,
  addDevice: 6,
  openSession: 2,
  openSocket: 2,
  changeByAdmin: 3,
  patchByPlatform: 3,
  moveByPlatform: 3,
  undo: 10,
}

export const accountModel = { actions, weights, hasFavourites: true, check, conclude }
