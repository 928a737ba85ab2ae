import { described, Sample } from '../../api/fields.ts'
import { operations } from '../../api/operation.ts'
import { samples } from '../../api/samples.ts'
import { pageOf } from '../../http/pagination.ts'
import type { RouteApp } from '../../http/request-context.ts'
import type { AvatarUrl } from '../../lib/avatar.ts'
import { parseId } from '../../lib/ids.ts'
import type { ReportStatus } from '../../lib/vocabulary.ts'
import type { Blocks } from './blocks.ts'
import * as model from './model.ts'
import type { Reports } from './reports.ts'

const user = operations('Moderation', { access: 'user' })
const admin = operations('Moderation', { access: 'admin' })

type Parts = {
  blocks: Blocks
  reports: Reports
  avatarUrl: AvatarUrl
  deskUrl: (fileUrl: string) => string
}

export function moderationRoutes(app: RouteApp, { blocks, reports, avatarUrl, deskUrl }: Parts) {
  app
    .get(
      '/v1/users/blocks',
      ({ query, context }) =>
        pageOf(
          query,
          (range) => blocks.list(context.user.userId, range),
          (item) => model.blockView(item, avatarUrl),
        ),
      user.list(
        'listBlocks',
        'Lists the people you have blocked, newest block first.',
        model.Block,
      ),
    )
    .put(
      '/v1/users/blocks/:user_id',
      ({ params, context }) => blocks.block(context.user.userId, params.user_id),
      user(
        'blockUser',
        'Blocks a person. Neither can write to the other. A repeated call changes nothing.',
        { 204: null },
      ),
    )
    .delete(
      '/v1/users/blocks/:user_id',
      ({ params, context }) => blocks.unblock(context.user.userId, params.user_id),
      user('unblockUser', 'Unblocks a person. A repeated call changes nothing.', { 204: null }),
    )
    .post(
      '/v1/reports',
      async ({ body, context }) =>
        model.ownReportView(await reports.open(context.user.userId, body)),
      user(
        'createReport',
        'Reports a person or a message to the desk. While a report is open, a repeated call for the same target returns it.',
        {
          201: model.OwnReport,
          body: model.NewReport,
          errors: ['not_found', 'quota_exceeded', 'text_quota_exceeded'],
        },
      ),
    )
    .get(
      '/v1/admin/reports',
      ({ query }) => {
        const status = query['status'] as ReportStatus | undefined // the pipeline has checked it
        const filter = { status, reportedId: idIn(query['reported_id']) }
        return pageOf(query, (range) => reports.list(filter, range), model.reportView)
      },
      admin.list('adminListReports', 'Lists reports, newest first.', model.Report, {
        query: {
          status: described(model.ReportStatusField, 'Only reports in this state.'),
          reported_id: Sample(samples.host.id, 'Only reports about this user or their messages.'),
        },
      }),
    )
    .get(
      '/v1/admin/reports/:id',
      async ({ params, context }) =>
        model.reportDetailView(await reports.view(params.id, context.byUser), deskUrl),
      admin(
        'adminGetReport',
        'Shows a report with the messages around the reported one. Each call is recorded in the audit log.',
        { 200: model.ReportDetail },
      ),
    )
    .patch(
      '/v1/admin/reports/:id',
      async ({ params, body, context }) =>
        model.reportDetailView(await reports.update(params.id, body, context.byUser), deskUrl),
      admin(
        'adminUpdateReport',
        'Resolves a report or adds a note to it. Resolving deletes its copies of messages.',
        {
          200: model.ReportDetail,
          body: model.ReportUpdate,
          errors: ['report_open'],
          example: {
            status: 'resolved',
            note: 'Spoke to them.',
            resolved_by_id: samples.admin.id,
            resolved_at: samples.time,
            messages: null,
          },
        },
      ),
    )
    .delete(
      '/v1/admin/messages/:id',
      ({ params, context }) => reports.removeMessage(params.id, context.byUser),
      admin('adminDeleteMessage', 'Removes a message. It stays in the list without content.', {
        204: null,
      }),
    )
}

const idIn = (text: string | undefined) => text && (parseId(text) ?? text)
