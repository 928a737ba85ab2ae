import { type Static, Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { Body, OneOf, Refined } from '../../api/fields.ts'
import { forCommands } from '../../api/operation.ts'
import { routeBase } from '../../http/request-context.ts'
import { isoTime } from '../../lib/clock.ts'
import { roles } from '../../lib/vocabulary.ts'
import {
  type ManagedView,
  newcomerProblems,
  type Rotation,
  registration,
  type SigningKey,
} from './model.ts'
import type { UserAdmin } from './people/user-admin.ts'
import type { Keyring } from './sign-in/keys.ts'

const { email, password } = registration
const NewAccount = Refined(
  Body('NewAccount', { email, password, role: OneOf(roles) }),
  newcomerProblems,
)

type Parts = { userAdmin: UserAdmin; keyring: Keyring; managedView: ManagedView }

export function accountCommandRoutes({ userAdmin, keyring, managedView }: Parts) {
  return new Elysia({ name: 'account-commands' })
    .use(routeBase)
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
    .get(
      '/v1/operator/keys',
      (): Static<typeof SigningKey>[] =>
        keyring
          .list()
          .map(({ kid, state, createdAt }) => ({ kid, state, created_at: isoTime(createdAt) })),
      forCommands(),
    )
    .post(
      '/v1/operator/keys/rotate',
      async ({ body, context }): Promise<Static<typeof Rotation>> => {
        const readyAt = await keyring.rotate({ isUrgent: body.now, ...context.by })
        return { ready_at: readyAt === undefined ? null : isoTime(readyAt) }
      },
      { body: Body('KeyRotation', { now: Type.Boolean() }), ...forCommands() },
    )
}
