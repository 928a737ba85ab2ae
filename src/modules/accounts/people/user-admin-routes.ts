import { type TSchema, Type } from '@sinclair/typebox'
import { Body, Email, Flag, OneOf, Refined, Sample, Schema, Text } from '../../../api/fields.ts'
import { forCommands, operations } from '../../../api/operation.ts'
import { samples } from '../../../api/samples.ts'
import { recentlyConfirmed } from '../../../http/confirmation.ts'
import { ListOf, listQuery, pageOf } from '../../../http/pagination.ts'
import type { RouteApp } from '../../../http/request-context.ts'
import { invalidField } from '../../../lib/errors.ts'
import { type BanKind, roles } from '../../../lib/vocabulary.ts'
import { Ban, type Bans, banKind, banValue, banView, NewBan } from '../bans/bans.ts'
import type { SendExport } from '../exports.ts'
import * as model from '../model.ts'
import type { Sessions } from '../sign-in/sessions.ts'
import type { UserRow } from '../store.ts'
import type { UserAdmin } from './user-admin.ts'
import { maxFound, type UserFilter } from './user-search-store.ts'

const admin = operations('Administration', { access: 'admin' })
const sensitive = operations('Administration', { access: 'admin', confirm: recentlyConfirmed })
const service = operations('Feed', { access: 'service', scope: 'users' })
const sessionFeed = operations('Feed', { access: 'service', scope: 'sessions' })

const userFilters = {
  q: Text(
    { max: 200 },
    {
      examples: ['okafor'],
      description:
        'Any part of a name or an address, ignoring accents and case; one or two characters match only the beginning. An id or external id also matches. ' +
        `\`total\` and numbered pages end at ${maxFound}; the cursor form continues.`,
    },
  ),
  role: OneOf(roles, { title: 'Role', description: 'Only people with this role.' }),
  disabled: Flag('Only people who are disabled, or who are not.'),
  email_verified: Flag('Only people whose address is verified, or is not.'),
}

type Query = Record<string, string | undefined>

function userFilterOf(query: Query): UserFilter {
  const flag = (text: string | undefined) => (text === undefined ? undefined : text === 'true')
  return {
    q: query['q']?.trim() || undefined,
    role: roles.find((role) => role === query['role']),
    isDisabled: flag(query['disabled']),
    isVerified: flag(query['email_verified']),
  }
}

// A lookup finds at most one user, so there is no cursor form.
const { page, per_page } = listQuery()
const lookup = { email: Email(), external_id: model.ExternalId }

type Parts = {
  sessions: Sessions
  bans: Bans
  userAdmin: UserAdmin
  countPurged: (user: UserRow) => Promise<model.PurgeCounts>
  managedView: model.ManagedView
  sendExport: SendExport
  exportSchema: TSchema
}

const { email, password } = model.registration
const NewAccount = Refined(
  Body('NewAccount', { email, password, role: OneOf(roles) }),
  model.newcomerProblems,
)

const PurgeStarted = Schema('PurgeStarted', {
  user_id: Sample(samples.guest.id),
  status: Type.Literal('processing'),
})

export function userAdminRoutes(app: RouteApp, parts: Parts) {
  const { sessions, bans, userAdmin, countPurged, managedView, sendExport, exportSchema } = parts

  app
    .get(
      '/v1/admin/users',
      ({ query }) =>
        pageOf(query, (range) => userAdmin.search(userFilterOf(query), range), managedView),
      admin.list('adminListUsers', 'Finds people, the oldest account first.', model.ManagedUser, {
        query: userFilters,
      }),
    )
    .get(
      '/v1/admin/users/:id',
      ({ params, context }) => managedView(userAdmin.get(params.id, context.by)),
      admin('adminGetUser', 'Shows a person.', { 200: model.ManagedUser }),
    )
    .patch(
      '/v1/admin/users/:id',
      async ({ params, body, context }) => {
        const { role, disabled, email_verified } = body
        const changes = { role, disabled, email_verified }
        return managedView(await userAdmin.update(params.id, changes, context.by))
      },
      sensitive(
        'adminUpdateUser',
        'Changes the role of a person, disables or enables them, or verifies the address. Absent fields keep their value. The last admin cannot be demoted or disabled. `email_verified: true` for an account that was registered but never verified removes everything the registrant has set: password, sessions, second factor, devices, links, name and picture.',
        {
          200: model.ManagedUser,
          body: model.AccessUpdate,
          errors: ['last_admin'],
          example: { role: 'host' },
        },
      ),
    )
    .delete(
      '/v1/admin/users/:id',
      ({ params, context }) => userAdmin.remove(params.id, context.by),
      sensitive(
        'adminDeleteUser',
        'Removes a person. Messages stay, shown as from a deleted user.',
        { 204: null, errors: ['last_admin'] },
      ),
    )
    .get(
      '/v1/admin/users/:id/purge',
      ({ params }) => countPurged(userAdmin.getAny(params.id)),
      admin('adminCountPurge', 'Counts what a purge of a person would remove now.', {
        200: model.PurgeCounts,
      }),
    )
    .post(
      '/v1/admin/users/:id/purge',
      async ({ params, context }) => ({
        user_id: (await userAdmin.purge(params.id, context.by)).id,
        status: 'processing' as const,
      }),
      sensitive(
        'adminPurgeUser',
        'Removes a person with all of their messages, files and tickets, and the reports they made, also when the account is already removed. A job does it; how much it removed is in the audit log (`user_purged`).',
        { 202: PurgeStarted, errors: ['last_admin'] },
      ),
    )
    .get(
      '/v1/admin/users/:id/export',
      ({ params, context, request }) =>
        sendExport(userAdmin.get(params.id, context.by), context, request.signal),
      admin(
        'adminExportUser',
        'Exports all data stored about a person. One export at a time and 5 an hour.',
        { 200: exportSchema, errors: ['quota_exceeded'] },
      ),
    )
    .post(
      '/v1/admin/users/:id/password-reset',
      ({ params, context }) => userAdmin.mailReset(params.id, context.by),
      admin(
        'adminSendPasswordReset',
        'Mails a person a link for setting a new password. Disabled people get no mail.',
        { 204: null, errors: ['mail_throttled'] },
      ),
    )
    .get(
      '/v1/admin/users/:id/sessions',
      async ({ params, query, context }) => {
        const { id } = userAdmin.get(params.id, context.by)
        const page = pageOf(
          query,
          (range) => sessions.list(id, range),
          (row) => model.sessionView(row, ''),
        )
        await userAdmin.viewSessions(id, context.by)
        return page
      },
      admin.list(
        'adminListUserSessions',
        'Lists the sessions of a person, one for each logged-in device. Each call is recorded in the audit log.',
        model.Session,
      ),
    )
    .delete(
      '/v1/admin/users/:id/sessions',
      ({ params, context }) => userAdmin.endSessions(params.id, context.by),
      sensitive('adminDeleteUserSessions', 'Logs a person out on every device.', { 204: null }),
    )
    .get(
      '/v1/operator/users/:email',
      ({ params }) => managedView(userAdmin.getByEmail(params.email)),
      forCommands(),
    )
    .post(
      '/v1/operator/users',
      async ({ body, context }) => managedView(await userAdmin.create(body, context.by)),
      { body: NewAccount, ...forCommands(201) },
    )
    .delete(
      '/v1/admin/users/:id/totp',
      ({ params, context }) => userAdmin.removeFactor(params.id, context.by),
      sensitive(
        'adminDeleteUserTotp',
        'Removes the second factor of a person, who is notified by mail. Without a second factor nothing changes.',
        { 204: null },
      ),
    )
    .get(
      '/v1/service/users',
      ({ query }) => {
        const { page, per_page, email, external_id: externalId }: Query = query
        const numbered = { ...(page && { page }), ...(per_page && { per_page }) }
        return pageOf(
          numbered,
          (range) => userAdmin.lookUp({ email, externalId }, range),
          managedView,
        )
      },
      service(
        'serviceListUsers',
        'Finds a person by e-mail address, external id, or both; one of them is required.',
        { 200: ListOf(model.ManagedUser), query: { page, per_page, ...lookup } },
      ),
    )
    .post(
      '/v1/service/users',
      async ({ body, context, set }) => {
        const { user, isNew } = await userAdmin.upsert(body, context.by)
        set.status = isNew ? 201 : 200
        return managedView(user)
      },
      service(
        'serviceCreateUser',
        'Creates a person, or brings the one with the same `external_id` up to date (200): absent fields keep their value, and an address without `email_verified: true` becomes unverified when it changes and gets a verification mail. An account registered with the same address but never verified is removed, because its owner has not proved the address. The new account has no password until its owner sets one by a reset link. Services cannot create admins.',
        {
          200: model.ManagedUser,
          201: model.ManagedUser,
          body: model.NewPerson,
          errors: ['email_taken', 'admin_protected'],
          example: { role: 'host' },
        },
      ),
    )
    .get(
      '/v1/service/users/:id',
      ({ params, context }) => managedView(userAdmin.get(params.id, context.by)),
      service('serviceGetUser', 'Shows a person.', { 200: model.ManagedUser }),
    )
    .patch(
      '/v1/service/users/:id',
      async ({ params, body, context }) =>
        managedView(await userAdmin.update(params.id, body, context.by)),
      service(
        'serviceUpdateUser',
        'Changes a person’s role, status, address or profile. Absent fields keep their value. A new `email` holds at once. Without `email_verified: true` it is unverified and gets a verification mail; sessions stay. Links mailed before stop working. Setting `external_id` or `email_verified: true` on an account that was registered but never verified removes everything the registrant has set: password, sessions, second factor, devices, links, name and picture. Services cannot make anybody an admin, nor change the role or the address of one, nor whether it is verified, nor disable one or take over their account.',
        {
          200: model.ManagedUser,
          body: model.PersonUpdate,
          errors: ['last_admin', 'admin_protected', 'email_taken', 'external_id_taken'],
          example: { role: 'host' },
        },
      ),
    )
    .delete(
      '/v1/service/users/:id',
      ({ params, context }) => userAdmin.remove(params.id, context.by),
      service(
        'serviceDeleteUser',
        'Removes a person, as they could themselves. Messages stay, shown as from a deleted user. Services cannot remove admins.',
        { 204: null, errors: ['admin_protected'] },
      ),
    )
    .delete(
      '/v1/service/users/:id/sessions',
      ({ params, context }) => userAdmin.endSessions(params.id, context.by),
      service('serviceDeleteSessions', 'Logs a person out on every device; no admin.', {
        204: null,
        errors: ['admin_protected'],
      }),
    )
    .post(
      '/v1/service/users/:id/sessions',
      ({ params, context }) => userAdmin.openSession(params.id, context.by),
      sessionFeed(
        'serviceCreateSession',
        'Creates a session for a person whom the platform has authenticated. Works for everybody except admins and disabled people, and requires no second factor. The scope `all` does not include `sessions`.',
        { 201: model.Authenticated, errors: ['admin_protected', 'recipient_gone', 'banned'] },
      ),
    )
    .get(
      '/v1/admin/bans',
      ({ query }) => {
        const wanted = query['kind'] as BanKind | undefined // the pipeline has checked it
        if (query['value'] !== undefined && !wanted) throw invalidField('kind', 'required')
        return pageOf(query, (range) => bans.list(wanted, query['value'], range), banView)
      },
      admin.list('adminListBans', 'Lists the bans, newest first.', Ban, {
        query: {
          kind: banKind,
          value: Text({ max: 254 }, { ...banValue, description: 'The value, with its `kind`.' }),
        },
      }),
    )
    .post(
      '/v1/admin/bans',
      async ({ body, context }) => banView(await bans.add(body, context.by)),
      admin(
        'adminCreateBan',
        'Bans a mail domain, an address or a network: registration, a change of the address and login, also one by the platform, are refused with the reason `banned`, and no session of theirs can be refreshed. The platform may still give somebody such an address. Those of a network end at once. A repeated ban changes reason and end.',
        { 201: Ban, body: NewBan },
      ),
    )
    .delete(
      '/v1/admin/bans/:id',
      ({ params, context }) => bans.remove(params.id, context.by),
      admin('adminDeleteBan', 'Removes a ban.', { 204: null }),
    )
}
