export function* chunksOf<T>(rows: Iterable<T>, size: number): Generator<T[]> {
  let chunk: T[] = []
  for (const row of rows) {
    chunk.push(row)
    if (chunk.length < size) continue
    yield chunk
    chunk = []
  }
  if (chunk.length > 0) yield chunk
}
