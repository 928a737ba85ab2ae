import { type Static, Type } from '@sinclair/typebox'
import {
  Body,
  Change,
  described,
  Flag,
  Maybe,
  Nullable,
  open,
  PersonId,
  Refined,
  Sample,
  Schema,
  Timestamp,
} from '../../api/fields.ts'
import { samples } from '../../api/samples.ts'
import { isoTime } from '../../lib/clock.ts'
import { type FieldProblems, problem } from '../../lib/errors.ts'
import { isMalformed } from '../../lib/text.ts'
import {
  messageFields,
  messageProblems,
  Participant,
  PlatformData,
  participantView,
  StateField,
} from './model.ts'
import type { PlatformConversationRow } from './platform-chat.ts'

const maxDataBytes = 4_096
const GivenData = described(PlatformData, 'An object of yours, at most 4 KiB of JSON.')

const TwoPeople = Type.Array(PersonId(), {
  minItems: 2,
  maxItems: 2,
  description: 'The two participants. The conversation is created if there is none.',
  examples: [[samples.host.id, `ext:${samples.guest.externalId}`]],
})

export const NewPlatformMessage = Refined(
  Schema(
    'NewPlatformMessage',
    {
      conversation_id: Maybe(Type.String({ description: 'An existing conversation.' })),
      user_ids: Maybe(TwoPeople),
      body: messageFields.body,
      data: Maybe(GivenData),
      from: Maybe({
        ...PersonId(),
        description:
          'The participant in whose name the message is sent, which needs the scope `messages_as`. Without it the message is a notice.',
      }),
      unread: Maybe(
        Flag(
          'Of a notice: whether it counts as unread and is pushed; default: no. Messages in the name of a participant always are.',
        ),
      ),
    },
    {
      description: 'With `conversation_id` or `user_ids`.',
      examples: [
        {
          user_ids: [samples.host.id, `ext:${samples.guest.externalId}`],
          body: 'Moved to 15:00',
          data: { booking_id: 'b-204', starts_at: samples.later },
          unread: true,
        },
      ],
      ...open,
    },
  ),
  ({ conversation_id, user_ids, body, data }): FieldProblems => ({
    ...(!conversation_id === !user_ids && { conversation_id: problem('one_place') }),
    ...messageProblems({ body }, 'text'),
    ...dataProblems(data),
  }),
)
export type NewPlatformMessage = Static<typeof NewPlatformMessage>

export const NewPlatformConversation = Body('NewPlatformConversation', { user_ids: TwoPeople })

export const PlatformConversationUpdate = Change(
  Body('PlatformConversationUpdate', { state: Maybe(StateField), data: Maybe(GivenData) }),
  ['data'],
  ({ data }) => dataProblems(data),
)
export type PlatformConversationUpdate = Static<typeof PlatformConversationUpdate>

function dataProblems(data: unknown): FieldProblems {
  if (typeof data !== 'object' || data === null) return {}
  let hasMalformedText = false
  const text = JSON.stringify(data, (key, value) => {
    hasMalformedText ||= isMalformed(key) || (typeof value === 'string' && isMalformed(value))
    return value
  })
  if (hasMalformedText) return { data: problem('malformed_text') }
  const bytes = Buffer.byteLength(text)
  return bytes > maxDataBytes ? { data: problem('too_many_bytes', maxDataBytes) } : {}
}

export const PlatformConversation = Schema('PlatformConversation', {
  id: Sample(samples.conversationId),
  participants: Type.Array(Participant),
  state: StateField,
  data: Nullable(PlatformData),
  created_at: Timestamp,
})

export function platformConversationView(
  row: PlatformConversationRow,
): Static<typeof PlatformConversation> {
  return {
    id: row.id,
    participants: row.participants.map(participantView),
    state: row.state,
    data: row.data === null ? null : JSON.parse(row.data),
    created_at: isoTime(row.createdAt),
  }
}
