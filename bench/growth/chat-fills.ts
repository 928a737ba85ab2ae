import { createConversations, otherOf } from '../../src/modules/chat/conversations.ts'
import { type ConversationRow, createChatStore } from '../../src/modules/chat/store.ts'
import { createTimelineStore } from '../../src/modules/chat/timeline-store.ts'
import { atScale, cast, type Dataset, differs, type Fill } from './dataset.ts'
import { otherPeople } from './people-fill.ts'

// At scale 1.
const messages = 1_000_000
const bigConversationMessages = 200_000
const pairs = 20_000
const timelinePart = 10_000

/** Talks with as many at every scale: a full page of conversations with something unread. */
const talksOfCleo = 40

export const messagesFill: Fill = {
  name: 'messages',
  fill: fillMessages,
  rules: ({ scale, bigConversation, people: [, , , , busy] }) => ({
    'as many messages as planned': differs('messages', atScale(messages, scale)),
    'the big conversation is as long as planned': differs(
      `messages WHERE conversation_id = '${bigConversation}'`,
      atScale(bigConversationMessages, scale),
    ),
    'the busy one has as many conversations as planned': differs(
      `participants WHERE user_id = '${busy}'`,
      atScale(otherPeople, scale),
    ),
    'last_seq is the number of messages':
      'SELECT count(*) FROM conversations c WHERE last_seq <> (SELECT count(*) FROM messages WHERE conversation_id = c.id)',
    'seq has no gaps':
      'SELECT count(*) FROM conversations c WHERE last_seq <> (SELECT coalesce(max(seq), 0) FROM messages WHERE conversation_id = c.id)',
    'unread_count is what came after the last reading': `SELECT count(*) FROM participants p WHERE unread_count <>
      (SELECT count(*) FROM messages WHERE conversation_id = p.conversation_id AND seq > p.last_read_seq
       AND recipient_id = p.user_id)`,
    'last_activity_at is the time of the last message': `SELECT count(*) FROM participants p
      JOIN conversations c ON c.id = p.conversation_id
      LEFT JOIN messages m ON m.conversation_id = c.id AND m.seq = c.last_seq
      WHERE p.last_activity_at <> coalesce(m.created_at, c.created_at)`,
    'conversation_count is the number of conversations':
      'SELECT count(*) FROM inboxes i WHERE conversation_count <> (SELECT count(*) FROM participants WHERE user_id = i.user_id)',
    'the timelines know every message of both users':
      'SELECT (SELECT count(*) FROM timelines) <> 2 * (SELECT count(*) FROM messages)',
    'every conversation has two participants':
      'SELECT (SELECT count(*) FROM participants) <> 2 * (SELECT count(*) FROM conversations)',
  }),
}

/** A fifth of all messages in the big conversation, three tenths in those of the busy one, the rest in the others. */
function fillMessages(dataset: Dataset) {
  const { orm, landmarks, newId, clock, pick, repeat } = dataset
  const store = createChatStore(orm)
  const conversations = createConversations({ store, newId, clock })
  const { big, busy, others } = openConversations(dataset, conversations.open)
  const [, , cleo] = landmarks.people

  repeat(atScale(messages, landmarks.scale), (n) => {
    const conversation = n % 5 === 0 ? big : [1, 4, 7].includes(n % 10) ? next(busy) : next(others)
    const { userA, userB } = conversation
    // Cleo only listens.
    const senderId = userA === cleo || (userB !== cleo && pick(2) === 0) ? userB : userA
    const { seq } = conversations.append(
      textMessage(conversation, senderId, bodies[n % bodies.length] ?? ''),
      conversation,
    )
    const hasReadTheRest = pick(8) === 0
    if (hasReadTheRest) store.updateRead(senderId, conversation.id, seq - 1)
  })
  const timelines = createTimelineStore(orm)
  while (timelines.update(timelinePart) === timelinePart);

  /** Each once, then at random. */
  function next(some: Cycle): ConversationRow {
    const found = some.rows[some.used++] ?? some.rows[pick(some.rows.length)]
    if (!found) throw new Error('there are no conversations to choose from')
    return found
  }
}

type Cycle = { rows: ConversationRow[]; used: number }

function openConversations(
  { landmarks, pick, repeat }: Dataset,
  open: (a: string, b: string) => ConversationRow,
) {
  const { people, scale } = landmarks
  const [ada = '', bob = '', cleo = '', dora = '', busyOne = ''] = people
  const busy: ConversationRow[] = []
  const others = new Map<string, ConversationRow>()
  const big = open(ada, bob)
  const small = open(ada, dora)
  others.set(small.id, small)
  repeat(people.length, (n) => {
    if (people[n] !== busyOne) busy.push(open(busyOne, people[n] ?? ''))
  })
  const random = Array.from({ length: atScale(pairs, scale) }, () => [
    people[pick(people.length)] ?? '',
    people[pick(people.length)] ?? '',
  ])
  const ofCleo = people.slice(cast.length, cast.length + talksOfCleo).map((other) => [cleo, other])
  const chosen = [...ofCleo, ...random]
  repeat(chosen.length, (n) => {
    const [a = '', b = ''] = chosen[n] ?? []
    const isTaken = a === b || a === busyOne || b === busyOne
    const row = isTaken ? undefined : open(a, b)
    if (row && row.id !== big.id) others.set(row.id, row)
  })
  landmarks.bigConversation = big.id
  landmarks.smallConversation = small.id
  landmarks.busyConversations = busy.map(({ id }) => id)
  return {
    big,
    busy: { rows: busy, used: 0 },
    others: { rows: [...others.values()], used: 0 },
  }
}

const sentence =
  'this is what people write to each other all day long: some of it is short, and now and then somebody has more to say than usual'
/** Texts of 10 to 122 characters. */
const bodies = Array.from({ length: 17 }, (_, n) => sentence.slice(0, 10 + n * 7))

function textMessage(conversation: ConversationRow, senderId: string, body: string) {
  return {
    conversationId: conversation.id,
    senderId,
    recipientId: otherOf(conversation, senderId),
    type: 'text' as const,
    body,
    fileUrl: null,
    fileName: null,
    fileSize: null,
    fileType: null,
    clientId: null,
    broadcastId: null,
  }
}
