import type { Role, ServiceScope } from './vocabulary.ts'

/** What the signature of an access token proves; `expiresAt` in ms since the epoch. */
export type AccessClaims = { userId: string; sessionId: string; expiresAt: number }

/** A person with a live session, as the database knows them at this request. */
export type UserPrincipal = AccessClaims & {
  role: Role
  isVerified: boolean
  /** An admin who has the second factor that `ADMIN_TOTP` may demand. */
  mayAdminister: boolean
}

/** Another part of the platform, by the key that it calls with. */
export type ServicePrincipal = { id: string; scopes: readonly ServiceScope[] }
