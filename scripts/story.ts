import type { createTestClock } from '../test/support/clock.ts'
import type { TestService } from '../test/support/service.ts'

const minute = 60_000
const hour = 60 * minute
/** The story ends now, so it begins this long ago. */
export const storyMilliseconds = 54 * hour + 15 * minute

type Clock = ReturnType<typeof createTestClock>
type Person = { id: string; name: string; email: string }

const roles = {
  'Grace Kim': 'admin',
  'Omar Haddad': 'admin',
  'Ada Moreno': 'host',
  'Kenji Watanabe': 'host',
  'Ben Okafor': 'verified_user',
  'Ewa Nowak': 'verified_user',
  'Luc Tremblay': 'verified_user',
  'Nia Adeyemi-Lindqvist': 'verified_user',
  'Tom Fischer': 'verified_user',
  'Mei Chen': 'verified_user',
} as const
type Cast = Record<keyof typeof roles, Person>

/** Fills a service with three days of a platform for language teachers, for screenshots. The clock stands at the
 *  beginning. */
export async function playStory(service: TestService, clock: Clock) {
  const people = createPeople(service, clock)
  const cast = {} as Cast // filled by the loop
  for (const [name, role] of Object.entries(roles)) {
    cast[name as keyof Cast] = await people.add(name, role) // a key of the same object
  }
  const grace = people.as(cast['Grace Kim'])
  const scene = { clock, people, cast, desk: createDesk(people) }
  await setUp(grace)
  const payout = await secondDay(scene, await firstDay(scene))
  const report = await thirdDay(scene, payout)
  await people.announce(cast['Grace Kim'])
  await busyHour(service, clock, grace)
  return { payout, report }
}

type Tickets = Awaited<ReturnType<typeof firstDay>>
type Scene = { clock: Clock; people: People; cast: Cast; desk: ReturnType<typeof createDesk> }

/** @returns the tickets that stay open */
async function firstDay({ clock, cast, desk }: Scene) {
  const invoice = await desk.open(cast['Ewa Nowak'], 'Invoice for March shows the wrong address', {
    body: 'Hello, my invoice still has my old address in Kraków. I moved in January and changed it in my profile. Can you send a corrected one?',
    category: 'billing',
  })
  clock.advance(3 * hour)
  await desk.reply(invoice, cast['Omar Haddad'], {
    body: 'Hi Ewa, you will find the corrected invoice attached to your account. Sorry for the trouble!',
    status: 'resolved',
  })
  const video = await desk.open(
    cast['Tom Fischer'],
    'No picture in video lessons since the update',
    {
      body: 'Since Tuesday my students hear me but see only black. Firefox 140 on Windows. Restarting did not help.',
      category: 'technical',
      priority: 'high',
    },
  )
  clock.advance(5 * hour)
  await desk.reply(video, cast['Omar Haddad'], {
    body: 'Thanks for the details, Tom. Could you open the settings of your camera in the browser and tell us which one is chosen?',
    status: 'in_progress',
  })
  const rename = await desk.open(cast['Mei Chen'], 'How do I change the name that others see?', {
    body: 'Hello, I would like to be shown by my English name. Where can I change that? Thank you.',
    category: 'account',
    priority: 'low',
  })
  return { video, rename }
}

/** @returns the ticket that stays open */
async function secondDay(
  { clock, cast, desk }: Scene,
  { video, rename }: Tickets,
): Promise<string> {
  clock.advance(14 * hour)
  await desk.reply(rename, cast['Grace Kim'], {
    body: 'Hello! You can change it under Profile → Name. It is shown everywhere at once.',
  })
  await desk.close(rename, cast['Mei Chen'])
  await desk.write(
    video,
    cast['Tom Fischer'],
    'It was the virtual camera of another program. Choosing the real one fixed it for me. But two students still see black?',
  )
  clock.advance(9 * hour)

  const payout = await desk.open(cast['Ben Okafor'], 'My payout is four days late', {
    body: 'My payout of 412.50 € from last Monday has not arrived. The page says “sent”. My bank sees nothing. I need it for rent on Friday.',
    category: 'billing',
    priority: 'urgent',
  })
  clock.advance(40 * minute)
  await desk.take(payout, cast['Grace Kim'])
  await desk.note(
    payout,
    cast['Grace Kim'],
    'The bank returned the transfer: the IBAN has a digit too many. Omar is asking them to hold the fee.',
  )
  clock.advance(10 * minute)
  await desk.reply(payout, cast['Grace Kim'], {
    body: 'Hi Ben, I understand that this is pressing. The bank sent the money back because of a typing error in the IBAN. Could you check the number in your payout settings? As soon as it is right I will send it again today.',
    status: 'in_progress',
  })
  return payout
}

/** @returns the report */
async function thirdDay({ clock, people, cast, desk }: Scene, payout: string): Promise<string> {
  await desk.open(cast['Luc Tremblay'], 'Remboursement d’un cours annulé', {
    body: 'Bonjour, mon cours de jeudi a été annulé par l’hôte. Quand serai-je remboursé ?',
    category: 'billing',
  })
  clock.advance(15 * hour)
  await talk(people, cast)
  const reported = await report(people, cast)
  await desk.open(cast['Nia Adeyemi-Lindqvist'], 'Can two people share one lesson?', {
    body: 'My sister and I would like to take lessons together from two places. Is that possible, and what does it cost?',
    category: 'other',
  })
  clock.advance(6 * hour)
  await desk.write(
    payout,
    cast['Ben Okafor'],
    'You are right, there was a 7 too many. I have corrected it. Please send it again, and thank you for being so quick!',
  )
  clock.advance(25 * minute)
  await desk.open(cast['Ada Moreno'], 'Calendar shows lessons an hour early', {
    body: 'Since the clocks changed, every lesson of my students in São Paulo is shown an hour early in my calendar. The reminders come at the right time.',
    category: 'technical',
    priority: 'high',
  })
  return reported
}

function createPeople(service: TestService, clock: Clock) {
  const tokens = new Map<string, { token: string; at: number }>()

  async function add(name: string, role: string): Promise<Person> {
    const first = name.split(' ')[0]?.toLowerCase()
    const { id, email } = await service.registerAs(role, first)
    service.sqlite.run('UPDATE users SET display_name = ? WHERE id = ?', [name, id])
    return { id, name, email }
  }

  async function tokenOf({ id, email }: Person): Promise<string> {
    const known = tokens.get(id)
    if (known && clock.now() - known.at < 10 * minute) return known.token
    const { token } = await service.login(email)
    tokens.set(id, { token, at: clock.now() })
    return token
  }

  const as = (person: Person) => async (method: string, path: string, body?: object) => {
    const answer = await service.call(method, path, { token: await tokenOf(person), body })
    if (answer.status >= 400) throw new Error(`${path}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }

  async function announce(by: Person) {
    await as(by)('POST', '/v1/admin/notifications', {
      audience: 'role',
      role: 'host',
      title: 'Payouts on Thursday',
      body: 'Because of the holiday, this week’s payouts are sent a day earlier.',
    })
  }

  return { add, as, announce }
}

type People = ReturnType<typeof createPeople>

function createDesk({ as }: People) {
  const desk = '/v1/admin/support/tickets'
  const own = '/v1/support/tickets'
  return {
    open: async (by: Person, subject: string, fields: object): Promise<string> =>
      (await as(by)('POST', own, { subject, ...fields })).id,
    write: (id: string, by: Person, body: string) =>
      as(by)('POST', `${own}/${id}/messages`, { body }),
    close: (id: string, by: Person) => as(by)('POST', `${own}/${id}/close`),
    reply: (id: string, by: Person, fields: object) =>
      as(by)('POST', `${desk}/${id}/messages`, fields),
    note: (id: string, by: Person, body: string) => as(by)('POST', `${desk}/${id}/notes`, { body }),
    take: (id: string, by: Person) => as(by)('PATCH', `${desk}/${id}`, { assignee_id: by.id }),
  }
}

async function setUp(call: ReturnType<People['as']>) {
  for (const [title, body] of [
    [
      'Greeting',
      'Thank you for writing to us. I am looking into it and will come back to you today.',
    ],
    [
      'Payout delayed',
      'Payouts reach most banks within two working days. If yours has not arrived by then, please send us the last four digits of the account.',
    ],
    [
      'Camera',
      'Please open the settings of your browser for this page and choose your camera there.',
    ],
  ]) {
    await call('POST', '/v1/admin/support/canned-replies', { title, body })
  }
  await call('POST', '/v1/auth/confirm', { password: 'correct horse' })
  await call('PATCH', '/v1/admin/settings', {
    platform_name: 'Lessons',
    app_url: 'https://lessons.example/',
    support_email: 'help@lessons.example',
    accent: '#8a3b12',
  })
  await call('POST', '/v1/admin/service-keys', { name: 'Calls', scopes: ['calls'] })
  await call('POST', '/v1/admin/service-keys', {
    name: 'Payments',
    scopes: ['notifications', 'follows'],
  })
  await call('POST', '/v1/admin/webhooks', {
    url: 'https://hooks.lessons.example/hostline',
    events: ['ticket.created', 'ticket.replied', 'user.created'],
    description: 'Team chat',
  })
}

async function talk({ as }: People, cast: Cast) {
  for (const [a, b, lines] of [
    [
      cast['Ada Moreno'],
      cast['Ben Okafor'],
      [
        'Hi Ben, see you tomorrow at ten?',
        'Yes! Can we do the past tense again?',
        'Of course. I am sending you two pages to read.',
      ],
    ],
    [
      cast['Kenji Watanabe'],
      cast['Ewa Nowak'],
      ['おはよう! Ready for the next chapter?', 'Almost, I still mix up は and が.'],
    ],
    [
      cast['Ada Moreno'],
      cast['Nia Adeyemi-Lindqvist'],
      [
        'Welcome to your first lesson!',
        'Thank you, I am a little nervous.',
        'No need. We start slowly.',
      ],
    ],
  ] as const) {
    const { id } = await as(a)('POST', '/v1/chat/conversations', { user_id: b.id })
    for (const [index, body] of lines.entries()) {
      const path = `/v1/chat/conversations/${id}/messages`
      await as(index % 2 === 0 ? a : b)('POST', path, { body })
    }
  }
}

/** @returns the id of the report */
async function report({ as }: People, cast: Cast): Promise<string> {
  const [ada, nia, tom] = [cast['Ada Moreno'], cast['Nia Adeyemi-Lindqvist'], cast['Tom Fischer']]
  const { id } = await as(tom)('POST', '/v1/chat/conversations', { user_id: nia.id })
  const path = `/v1/chat/conversations/${id}/messages`
  await as(tom)('POST', path, { body: 'Hello Nia, I saw that you are looking for lessons.' })
  await as(nia)('POST', path, { body: 'Hi! Yes, but I have a teacher now.' })
  const offer = await as(tom)('POST', path, {
    body: 'Pay me outside of the platform and it is half the price. Send me your card number.',
  })
  await as(nia)('POST', path, { body: 'No, thank you.' })
  const { id: reportId } = await as(nia)('POST', '/v1/reports', {
    message_id: offer.id,
    reason: 'fraud',
    body: 'He wants my card number and payment outside of the platform.',
  })
  await as(tom)('POST', '/v1/reports', { user_id: ada.id, reason: 'spam' })
  return reportId
}

/** Traffic of an hour for the charts. */
async function busyHour(service: TestService, clock: Clock, call: ReturnType<People['as']>) {
  for (let passed = 0; passed < 60; passed++) {
    const wave = 12 + Math.round(8 * Math.sin(passed / 7)) + (passed % 5)
    for (let n = 0; n < wave; n++)
      await service.request(n % 3 === 0 ? '/readyz' : '/v1/openapi.json')
    await call('GET', '/v1/users/me')
    clock.advance(minute)
  }
}
