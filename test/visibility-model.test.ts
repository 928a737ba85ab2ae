import { test } from 'bun:test'
import { size } from './support/faults.ts'
import { playSeeds } from './support/model.ts'
import { describeMutations, type Mutation } from './support/model-mutations.ts'
import { beginWorld, startStage } from './support/model-visibility.ts'
import { visibilityModel } from './support/model-visibility-actions.ts'
import { checkAtEnd, checkSometimes } from './support/model-visibility-checks.ts'

const steps = size(20, 12)
const seedsAtOnce = size(100, 60, 4)
const starts = Array.from({ length: size(30, 1) }, (_, index) => index * seedsAtOnce)

test.each(starts)(
  'each user sees exactly the data meant for them, after any sequence of actions (seeds from %i on)',
  async (start) => {
    await using stage = await startStage()
    const seeds = Array.from({ length: seedsAtOnce }, (_, index) => start + index)
    const begin = () => beginWorld(stage)
    const model = { ...visibilityModel, begin, check: checkSometimes, conclude: checkAtEnd }
    await playSeeds(model, seeds, steps)
  },
)

const chat = 'src/modules/chat'
const moderation = 'src/modules/moderation'

const mutations: Mutation[] = [
  {
    name: 'a block stops no messages',
    file: `${moderation}/blocks.ts`,
    from: '=> !store.areBlocked(userId, otherId)',
    to: '=> store.areBlocked(userId, otherId) || true',
  },
  {
    name: 'one side ends the block of both',
    file: `${moderation}/blocks.ts`,
    from: 'if (store.isBlocking(otherId, userId)) store',
    to: 'if (otherId === userId) store',
  },
  {
    name: 'later names of blocked people are shown',
    file: 'src/modules/chat/store.ts',
    from: 'displayName: sql',
    to: 'displayName: users.displayName, nameAtBlock: sql',
  },
  {
    name: 'pictures of blocked people are shown',
    file: 'src/modules/chat/store.ts',
    from: 'avatarUrl: sql',
    to: 'avatarUrl: users.avatarUrl, shownUrl: sql',
  },
  {
    name: 'a list of blocks shows later names',
    file: `${moderation}/block-store.ts`,
    from: 'displayName: blocks.otherName }',
    to: 'displayName: sql<string>`(SELECT display_name FROM users WHERE id = other_user_id)` }',
  },
  {
    name: 'removals are sent to blocked people',
    file: `${chat}/service.ts`,
    from: 'removedBy === undefined || mayTalk(userA, userB)',
    to: 'removedBy === undefined || userA',
  },
  {
    name: 'a read-only conversation takes messages',
    file: `${chat}/service.ts`,
    from: "if (state === 'read_only') return state",
    to: '',
  },
  {
    name: 'readers remove notices',
    file: `${chat}/service.ts`,
    from: 'if (message.senderId !== userId) throw',
    to: 'if (message.senderId !== userId && message.senderId !== null) throw',
  },
  {
    name: 'a quiet notice counts as unread',
    file: `${chat}/store.ts`,
    from: 'return isSilent === 0 ? [userA, userB] : []',
    to: 'return isSilent < 2 ? [userA, userB] : []',
  },
  {
    name: 'data of a removed notice stays',
    file: `${chat}/store.ts`,
    from: "body: '', data: null, picture",
    to: "body: '', picture",
  },
  {
    name: 'a second block is sent again',
    file: `${moderation}/blocks.ts`,
    from: 'if (mightTalk) onChanged',
    to: 'onChanged',
  },
  {
    name: 'others do not hear that a person is gone',
    file: 'src/modules/accounts/account-parts.ts',
    from: 'if (changes.disabledAt !== undefined) onReachChanged(userId)',
    to: '',
  },
  {
    name: 'receipts are sent to blocked people',
    file: `${chat}/read-state.ts`,
    from: 'if (!before || !mayTalk(userId, before.otherUserId)) return',
    to: 'if (!before) return',
  },
  {
    name: 'muting has no effect',
    file: `${chat}/unread-store.ts`,
    from: '(participant.mutedUntil ?? 0) > clock.now()',
    to: '(participant.mutedUntil ?? 0) < 0',
  },
  {
    name: 'a broadcast reaches blocked people',
    file: `${chat}/broadcasts.ts`,
    from: 'if (!mayTalk(senderId, followerId)) return false',
    to: '',
  },
  {
    name: 'a broadcast is echoed to its host',
    file: `${chat}/broadcasts.ts`,
    from: 'chat.post(content, conversation, [followerId])',
    to: 'chat.post(content, conversation, [followerId, senderId])',
  },
  {
    name: 'strangers read conversations',
    file: `${chat}/service.ts`,
    from: "if (!isOf(conversation, userId)) throw new AppError('not_participant')",
    to: '',
  },
  {
    name: 'recipients remove messages',
    file: `${chat}/service.ts`,
    from: "if (message.senderId !== userId) throw new AppError('not_owner')",
    to: '',
  },
  {
    name: 'a removed text stays readable',
    file: `${chat}/store.ts`,
    from: "{ ...noFile, body: '', data",
    to: '{ ...noFile, body, data',
  },
  {
    name: 'a removed message counts as unread',
    file: `${chat}/store.ts`,
    from: 'countRead.run(unread.filter(isCounted).length, userId)',
    to: 'countRead.run(0, userId)',
  },
  {
    name: 'the desk does not see removed messages',
    file: `${chat}/service.ts`,
    from: 'messageView(store.withOriginalText(row))',
    to: 'messageView(row)',
  },
  {
    name: 'strangers report messages',
    file: `${chat}/service.ts`,
    from: 'if (!conversation || !isOf(conversation, userId)) return undefined',
    to: 'if (!conversation) return undefined',
  },
  {
    name: 'a resolved report keeps its messages',
    file: `${moderation}/reports.ts`,
    from: 'resolvedById: by.actor.id, excerpt: null }',
    to: 'resolvedById: by.actor.id }',
  },
  {
    name: 'files of others are accepted',
    file: 'src/modules/files/uses.ts',
    from: 'if (id === undefined || store.addUse(usedBy, id, ownerId)) return',
    to: 'if (id === undefined || store.addUse(usedBy, id)) return',
  },
  {
    name: 'a file stays when its message goes',
    file: 'src/modules/files/uses.ts',
    from: "if (type === 'message.deleted') store.listUsed(messageId).forEach(files.withdraw)",
    to: '',
  },
  {
    name: 'strangers remove files',
    file: 'src/modules/files/service.ts',
    from: "if (file.ownerId !== ownerId) throw new AppError('not_found')",
    to: '',
  },
  {
    name: 'a picture outlives its file',
    file: 'src/modules/files/service.ts',
    from: 'if (store.deleteUse(ownerId, id)) dropPicture(ownerId)',
    to: '',
  },
  {
    name: 'copies of a broadcast cause events of their own',
    file: `${chat}/service.ts`,
    from: 'if (content.broadcastId === null) {',
    to: 'if (content) {',
  },
  {
    name: 'the catch-up omits a message',
    file: `${chat}/inbox-store.ts`,
    from: 'WHERE conversation_id = ? AND seq BETWEEN ? AND ? AND NOT (',
    to: 'WHERE conversation_id = ? AND seq BETWEEN 1 + ? AND ? AND NOT (',
  },
  {
    name: 'an export leaves received messages out',
    file: `${chat}/store.ts`,
    from: '(row) => (row.senderId === userId && row.broadcastId !== null ? undefined : row)',
    to: '(row) => (row.senderId === userId ? row : undefined)',
  },
  {
    name: 'forgotten messages count as unread',
    file: `${chat}/forgetting.ts`,
    from: 'if (unread === 0) return false',
    to: 'if (unread >= 0) return false',
  },
  {
    name: 'a report does not keep its message',
    file: `${chat}/forgetting.ts`,
    from: '?.seq ?? newest + 1',
    to: '?.seq ? newest + 1 : newest + 1',
  },
  {
    name: 'files of forgotten messages stay',
    file: `${chat}/forgetting.ts`,
    from: 'if (message.fileUrl !== null || message.deletedAt !== null) detach(message.id)',
    to: '',
  },
  {
    name: 'removed users are named in notifications',
    file: 'src/modules/notifications/notifier.ts',
    from: 'const { follower_name: _, guest_name: __, host_name: ___, ...left } = data',
    to: 'const { ...left } = data',
  },
]

describeMutations(
  mutations,
  'test/visibility-model.test.ts',
  'each user sees exactly the data meant for them',
)
