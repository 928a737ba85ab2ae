/** Page size of all lists. */
export const pageSize = 50

export const pageQuery = (cursor: string | undefined) => ({
  limit: pageSize,
  ...(cursor !== undefined && { cursor }),
})
