/** Page size of all lists. */
export const partSize = 50

export const partQuery = (cursor: string | undefined) => ({
  limit: partSize,
  ...(cursor !== undefined && { cursor }),
})
