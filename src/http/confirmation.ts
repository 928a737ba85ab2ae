/** The session must have been confirmed (`POST /v1/auth/confirm`) within the last `minutes`. */
export type Confirmation = {
  minutes: number
  /** A field of the body that is accepted instead. */
  unless?: string
  /** Required only when this field of the body has this value. */
  onlyFor?: { field: string; value: string }
}

export const recentlyConfirmed: Confirmation = { minutes: 10 }

export function isRequired({ unless, onlyFor }: Confirmation, body: unknown): boolean {
  const fields = (body ?? {}) as Record<string, unknown> // the schema of such a body is an object
  if (onlyFor) return fields[onlyFor.field] === onlyFor.value
  return unless === undefined || (fields[unless] ?? null) === null
}

export function confirmationSentence({ minutes, unless, onlyFor }: Confirmation): string {
  const proof = unless === undefined ? '' : `\`${unless}\` or `
  const only = onlyFor ? `With \`${onlyFor.field}: ${onlyFor.value}\` it needs` : 'Needs'
  return `${only} ${proof}a confirmation (\`POST /v1/auth/confirm\`) within the last ${minutes} minutes.`
}
