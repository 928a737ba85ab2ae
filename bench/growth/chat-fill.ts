import { conversations, inboxes, messages, participants } from '../../src/db/schema.ts'
import { prepareInsert } from '../../src/db/statements.ts'
import { atScale, cast, type Dataset, differs, type Fill, idOf } from './dataset.ts'

// At scale 1.
const pairs = 20_000

// The same at every scale.
/** A full page of conversations with unread messages. */
const talksOfCleo = 40
/** The messages that Cleo missed. */
const messagesToCleo = 6_000

/** `count` messages at scale 1, a fifth of them in the big conversation. */
export const messagesFill = (count: number): Fill => ({
  name: 'messages',
  fill: (dataset) => fillMessages(dataset, atScale(count, dataset.landmarks.scale)),
  rules: (landmarks) => ({
    'as many messages as planned': differs(
      'messages',
      atScale(count, landmarks.scale) + messagesToCleo,
    ),
    'the big conversation is as long as planned': differs(
      `messages WHERE conversation_id = '${landmarks.bigConversation}'`,
      Math.ceil(atScale(count, landmarks.scale) / 5),
    ),
    'the busy one talks with everybody': differs(
      `participants WHERE user_id = '${idOf(landmarks, 'busy')}'`,
      landmarks.people.length - 1,
    ),
    'last_seq is the number of messages':
      'SELECT count(*) FROM conversations c WHERE last_seq <> (SELECT count(*) FROM messages WHERE conversation_id = c.id)',
    'seq has no gaps':
      'SELECT count(*) FROM conversations c WHERE last_seq <> (SELECT coalesce(max(seq), 0) FROM messages WHERE conversation_id = c.id)',
    'unread_count is what came after the last reading': `SELECT count(*) FROM participants p WHERE unread_count <>
      (SELECT count(*) FROM messages WHERE conversation_id = p.conversation_id AND seq > p.last_read_seq
       AND sender_id <> p.user_id)`,
    'last_activity_id is the last message': `SELECT count(*) FROM participants p
      JOIN conversations c ON c.id = p.conversation_id
      LEFT JOIN messages m ON m.conversation_id = c.id AND m.seq = c.last_seq
      WHERE p.last_activity_id <> coalesce(m.id, c.id)`,
    'ids rise with seq': `SELECT count(*) FROM messages m
      JOIN messages next ON next.conversation_id = m.conversation_id AND next.seq = m.seq + 1 WHERE next.id <= m.id`,
    'conversation_count is the number of conversations':
      'SELECT count(*) FROM inboxes i WHERE conversation_count <> (SELECT count(*) FROM participants WHERE user_id = i.user_id)',
    'the unread messages of a user are those of the conversations':
      'SELECT count(*) FROM inboxes i WHERE unread_count <> (SELECT sum(unread_count) FROM participants WHERE user_id = i.user_id)',
    'every conversation has two participants':
      'SELECT (SELECT count(*) FROM participants) <> 2 * (SELECT count(*) FROM conversations)',
    'participants know each other': `SELECT count(*) FROM participants p JOIN conversations c ON c.id = p.conversation_id
      WHERE (min(p.user_id, p.other_user_id), max(p.user_id, p.other_user_id)) <> (c.user_a, c.user_b)`,
  }),
})

type Participant = typeof participants.$inferSelect
type Talk = {
  conversation: typeof conversations.$inferSelect
  participants: [Participant, Participant]
}

/** A fifth of all messages in the big conversation, three tenths in those of the busy person, the rest in the
 *  others, and then Cleo's. Inserts go straight into the table; counters are written once at the end. */
function fillMessages(dataset: Dataset, count: number) {
  const { landmarks, newId, clock, pick, repeat } = dataset
  const insert = prepareInsert(dataset.sqlite, messages)
  const talks = openTalks(dataset)
  const busy = eachThenAny(talks.busy)
  const others = eachThenAny(talks.others)
  const cleo = idOf(landmarks, 'cleo')

  repeat(count, (n) => {
    const talk = n % 5 === 0 ? talks.big : [1, 4, 7].includes(n % 10) ? busy() : others()
    post(talk, n)
  })
  repeat(messagesToCleo, (n) => {
    landmarks.newestToCleo.push(post(talks.cleos[n % talks.cleos.length] ?? talks.big, n))
  })
  store(dataset, talks.all)

  /** @returns the id of the message */
  function post({ conversation, participants: [a, b] }: Talk, n: number): string {
    // Cleo never sends.
    const isFromB = a.userId === cleo || (b.userId !== cleo && pick(2) === 0)
    const [sender, recipient] = isFromB ? [b, a] : [a, b]
    const id = newId()
    const seq = ++conversation.lastSeq
    sender.lastActivityId = id
    recipient.lastActivityId = id
    recipient.unreadCount++
    const hasReadTheRest = pick(8) === 0
    if (hasReadTheRest) Object.assign(sender, { unreadCount: 0, lastReadSeq: seq - 1 })
    insert({
      conversationId: conversation.id,
      seq,
      id,
      senderId: sender.userId,
      type: 'text',
      body: bodies[n % bodies.length] ?? '',
      ...noFile,
      clientId: null,
      deletedAt: null,
      isSilent: 0,
      data: null,
      broadcastId: null,
      createdAt: clock.now(),
    })
    return id
  }

  /** Each one once, then at random. */
  function eachThenAny(some: readonly Talk[]) {
    let used = 0
    return () => some[used++] ?? some[pick(some.length)] ?? talks.big
  }
}

function openTalks({ landmarks, newId, clock, pick }: Dataset) {
  const { people, scale } = landmarks
  const [ada = '', bob = '', cleo = '', dora = '', busyOne = ''] = people
  const talks = new Map<string, Talk>()
  const open = (one: string, other: string): Talk => {
    const [userA, userB] = one < other ? [one, other] : [other, one]
    const talk = talks.get(userA + userB) ?? newTalk(newId(), [userA, userB], clock.now())
    talks.set(userA + userB, talk)
    return talk
  }
  const big = open(ada, bob)
  const small = open(ada, dora)
  const busy = people.filter((id) => id !== busyOne).map((id) => open(busyOne, id))
  const cleos = people.slice(cast.length, cast.length + talksOfCleo).map((id) => open(cleo, id))
  for (let n = atScale(pairs, scale); n > 0; n--) {
    const [one, other] = [people[pick(people.length)] ?? '', people[pick(people.length)] ?? '']
    if (one !== other && one !== busyOne && other !== busyOne) open(one, other)
  }
  landmarks.bigConversation = big.conversation.id
  landmarks.smallConversation = small.conversation.id
  landmarks.busyConversation = busy[0]?.conversation.id ?? ''
  const all = [...talks.values()]
  const isBusy = new Set(busy)
  return { all, big, busy, cleos, others: all.filter((talk) => talk !== big && !isBusy.has(talk)) }
}

function newTalk(id: string, users: [string, string], createdAt: number): Talk {
  const [userA, userB] = users
  const none = { unreadCount: 0, lastReadSeq: 0, mutedUntil: null, isArchived: 0 }
  const common = { conversationId: id, ...none, lastActivityId: id }
  return {
    conversation: {
      id,
      userA,
      userB,
      lastSeq: 0,
      firstSeq: 1,
      createdAt,
      state: 'open',
      data: null,
    },
    participants: [
      { ...common, userId: userA, otherUserId: userB },
      { ...common, userId: userB, otherUserId: userA },
    ],
  }
}

function store({ sqlite, repeat }: Dataset, talks: readonly Talk[]) {
  const insertConversation = prepareInsert(sqlite, conversations)
  const insertParticipant = prepareInsert(sqlite, participants)
  const insertInbox = prepareInsert(sqlite, inboxes)
  repeat(talks.length, (n) => {
    const talk = talks[n]
    if (talk) insertConversation(talk.conversation)
    for (const participant of talk?.participants ?? []) insertParticipant(participant)
  })
  const counts = Map.groupBy(
    talks.flatMap((talk) => talk.participants),
    ({ userId }) => userId,
  )
  for (const [userId, own] of counts) {
    const unreadCount = own.reduce((sum, participant) => sum + participant.unreadCount, 0)
    insertInbox({
      userId,
      conversationCount: own.length,
      archivedCount: 0,
      unreadCount,
      mailedThrough: null,
      isMailed: false,
    })
  }
}

const noFile = {
  fileUrl: null,
  fileName: null,
  fileSize: null,
  fileType: null,
  picture: null,
  attachments: null,
}
const sentence =
  'this is what people write to each other all day long: some of it is short, and now and then somebody has more to say than usual'
/** Texts of 10 to 122 characters. */
const bodies = Array.from({ length: 17 }, (_, n) => sentence.slice(0, 10 + n * 7))
