/** Why the server closes a socket (decisions 6). */
export const closeCodes = {
  goingAway: 1001,
  malformedFrames: 4400,
  tokenExpired: 4401,
  accessRevoked: 4403,
  tooManySockets: 4409,
  tooManyFrames: 4429,
} as const

export type CloseCode = (typeof closeCodes)[keyof typeof closeCodes]
