/** Requires that the session's owner has confirmed it (`POST /v1/auth/confirm`) within the last minutes. */
export type Confirmation = {
  minutes: number
  /** A field of the body that proves the same. */
  unless?: string
  /** Required only when this field of the body has this value. */
  onlyFor?: { field: string; value: string }
}

/** For actions that must not be open to a stolen token or on an unattended screen. */
export const confirmedLately: Confirmation = { minutes: 10 }

export function isAsked({ unless, onlyFor }: Confirmation, body: unknown): boolean {
  const given = (body ?? {}) as Record<string, unknown> // the schema of such a body is an object
  if (onlyFor) return given[onlyFor.field] === onlyFor.value
  return unless === undefined || (given[unless] ?? null) === null
}

export function confirmationSentence({ minutes, unless, onlyFor }: Confirmation): string {
  const proof = unless === undefined ? '' : `\`${unless}\` or `
  const only = onlyFor ? `With \`${onlyFor.field}: ${onlyFor.value}\` it needs` : 'Needs'
  return `${only} ${proof}a confirmation (\`POST /v1/auth/confirm\`) of the last ${minutes} minutes.`
}
