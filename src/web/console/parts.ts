/** What a list asks for, part by part. */
export const partSize = 50

export const partQuery = (cursor: string | undefined) => ({
  limit: partSize,
  ...(cursor !== undefined && { cursor }),
})
