import type { Body } from '../../../../client/src/client.ts'
import { request } from '../session.ts'

export type Change = Body<'PATCH /v1/admin/support/tickets/{id}'>

export const changeTicket = (id: string, change: Change) =>
  request('PATCH /v1/admin/support/tickets/{id}', { params: { id }, body: change })
