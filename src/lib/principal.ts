import { day } from './clock.ts'
import type { Role, ServiceScope } from './vocabulary.ts'

/** A session ends this long after its login, however often it is refreshed. */
export const longestSessionMilliseconds = 180 * day

/** The claims of a verified access token; `expiresAt` in ms since the epoch. */
export type AccessClaims = { userId: string; sessionId: string; expiresAt: number }

/** A user with a live session, as stored in the database at this request. */
export type UserPrincipal = AccessClaims & {
  role: Role
  isVerified: boolean
  /** An admin who has enabled the second factor, if `ADMIN_TOTP` demands it. */
  mayAdminister: boolean
  /** The platform began the session, so that it may name people by external ids. */
  mayUseExternalIds: boolean
}

export type Client = { ip: string; userAgent: string | null }

export type ServicePrincipal = { id: string; scopes: readonly ServiceScope[] }
