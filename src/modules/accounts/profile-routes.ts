import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { operation } from '../../http/operation.ts'
import { envelope, ListOf, listQuery, listRange } from '../../http/pagination.ts'
import { type RequestContext, routeBase } from '../../http/request-context.ts'
import {
  type AvatarUrl,
  PasswordBody,
  Profile,
  ProfileUpdate,
  profileView,
  Session,
  sessionView,
} from './model.ts'
import type { ProfileService } from './profile-service.ts'
import type { ProfileChanges, UserRow } from './store.ts'

const tag = 'Accounts'
const pageSize = 20

type ProfileRoutesOptions = {
  profiles: ProfileService
  avatarUrl: AvatarUrl
  /** What the other modules keep of a person, by name, piece by piece. */
  exportOf: (userId: string) => Record<string, Iterable<unknown>>
}

/** A person's own account. */
export function profileRoutes({ profiles, avatarUrl, exportOf }: ProfileRoutesOptions) {
  const view = (user: UserRow) => profileView(user, avatarUrl)

  return new Elysia({ name: 'profile' })
    .use(routeBase)
    .get('/v1/users/me', ({ context }) => view(profiles.get(context.user.userId)), {
      access: 'user',
      limit: 'default',
      detail: operation({ tag, summary: 'Show the own profile', success: { 200: Profile } }),
    })
    .patch(
      '/v1/users/me',
      async ({ body, context }) =>
        view(await profiles.update(context.user.userId, changesOf(body))),
      {
        access: 'user',
        limit: 'default',
        body: ProfileUpdate,
        detail: operation({ tag, summary: 'Change the own profile', success: { 200: Profile } }),
      },
    )
    .delete(
      '/v1/users/me',
      async ({ body, context }) => {
        await profiles.remove(personAt(context), body.password)
      },
      {
        access: 'user',
        limit: 'default',
        body: PasswordBody,
        detail: operation({
          tag,
          summary: 'Remove the own account; messages stay, shown as a deleted user’s',
          success: { 204: null },
          errors: ['invalid_credentials', 'conflict'],
        }),
      },
    )
    .get(
      '/v1/users/me/export',
      ({ context, set }) => {
        const { userId, sessionId } = context.user
        const everything = { form: 'page', page: 1, perPage: 10_000, offset: 0 } as const
        const { rows } = profiles.listSessions(userId, everything)
        const own = {
          user: view(profiles.get(userId)),
          sessions: rows.map((row) => sessionView(row, sessionId)),
        }
        set.headers['content-type'] = 'application/json'
        set.headers['content-disposition'] = 'attachment; filename="hostline-export.json"'
        return new Response(jsonStream(own, exportOf(userId)))
      },
      {
        access: 'user',
        limit: 'default',
        detail: operation({
          tag,
          summary: 'Everything that is kept about oneself',
          success: {
            200: Type.Object(
              { user: Profile, sessions: Type.Array(Session) },
              { title: 'Export', additionalProperties: true },
            ),
          },
        }),
      },
    )
    .get(
      '/v1/auth/sessions',
      ({ query, context }) => {
        const { userId, sessionId } = context.user
        const range = listRange(query, pageSize)
        return envelope(range, profiles.listSessions(userId, range), (row) =>
          sessionView(row, sessionId),
        )
      },
      {
        access: 'user',
        limit: 'default',
        detail: operation({
          tag,
          query: listQuery(pageSize),
          summary: 'List the devices that are logged in',
          success: { 200: ListOf(Session) },
        }),
      },
    )
    .delete(
      '/v1/auth/sessions/:id',
      async ({ params, context }) => {
        await profiles.endSession(personAt(context), params.id)
      },
      {
        access: 'user',
        limit: 'default',
        detail: operation({ tag, summary: 'Log a device out', success: { 204: null } }),
      },
    )
}

function personAt(context: RequestContext) {
  const { userId, sessionId } = context.user
  return { userId, sessionId, ip: context.ip }
}

function changesOf({ display_name, avatar_url, locale }: ProfileUpdate): ProfileChanges {
  return { displayName: display_name?.trim(), avatarUrl: avatar_url, locale }
}

/** One JSON object that is written piece by piece, however long its lists are. */
function jsonStream(start: object, lists: Record<string, Iterable<unknown>>) {
  function* pieces() {
    yield JSON.stringify(start).slice(0, -1)
    for (const [name, list] of Object.entries(lists)) {
      let separator = `,${JSON.stringify(name)}:[`
      for (const item of list) {
        yield separator + JSON.stringify(item)
        separator = ','
      }
      yield separator === ',' ? ']' : `${separator}]`
    }
    yield '}'
  }
  const text = pieces()
  const encoder = new TextEncoder()
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      const { value, done } = text.next()
      if (done) controller.close()
      else controller.enqueue(encoder.encode(value))
    },
  })
}
