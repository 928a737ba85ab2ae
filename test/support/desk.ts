import type { Substitutes } from '../../src/serve.ts'
import { createTestClock } from './clock.ts'
import { type Person, startService, type TestService } from './service.ts'

type Options = Substitutes & { environment?: Record<string, string>; listen?: boolean }

export const desk = '/v1/admin/support/tickets'
export const own = '/v1/support/tickets'
export const day = 86_400_000

/** A service with a user, Ada, an admin, Root, and a test clock. */
export async function openDesk(options: Options = {}) {
  const clock = createTestClock()
  const service = await startService({ clock, ticketsPerDay: 1_000, ...options })
  let people = 0
  return {
    ...(await meetPeople(service, clock, (name) => name)),
    /** The desk with another Ada and another Root, for tests that share a service. */
    withNewPeople: () => meetPeople(service, clock, (name) => `${name}${++people}`),
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  }
}

export type Desk = Awaited<ReturnType<typeof meetPeople>>

async function meetPeople(
  service: TestService,
  clock: ReturnType<typeof createTestClock>,
  addressOf: (name: string) => string,
) {
  const ada = await service.register('ada', addressOf('ada'))
  const hire = (name: string): Promise<Person> => service.registerAs('admin', name, addressOf(name))
  const root = await hire('root')

  /** Opens a ticket, by default as Ada.
   *  @returns the response body */
  async function open(fields: object = {}, by = ada) {
    const body = { subject: 'Refund', body: 'Where is it?', ...fields }
    return (await service.call('POST', own, { token: by.token, body })).body
  }

  return {
    service,
    clock,
    ada,
    root,
    hire,
    open,
    write: (id: string, body: string, by = ada) =>
      service.call('POST', `${own}/${id}/messages`, { token: by.token, body: { body } }),
    answer: (id: string, fields: object = {}, by = root) =>
      service.call('POST', `${desk}/${id}/messages`, {
        token: by.token,
        body: { body: 'On its way.', ...fields },
      }),
    update: (id: string, body: object, by = root) =>
      service.call('PATCH', `${desk}/${id}`, { token: by.token, body }),
    close: (id: string, by = ada) =>
      service.call('POST', `${own}/${id}/close`, { token: by.token }),
    /** The ticket as the desk sees it. */
    show: async (id: string) =>
      (await service.call('GET', `${desk}/${id}`, { token: root.token })).body,
    list: async (query = '', by = root) =>
      (await service.call('GET', `${desk}${query}`, { token: by.token })).body,
  }
}
