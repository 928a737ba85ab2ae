import { signal } from '@preact/signals'
import type { Client } from '../../../client/src/client.ts'

export type Blocks = ReturnType<typeof openBlocks>

/** People blocked by this person. The service does not reveal who has blocked them; it only refuses messages. */
export function openBlocks(client: Client) {
  const ids = signal<ReadonlySet<string>>(new Set())

  async function load() {
    const found = new Set<string>()
    for await (const { user } of client.blocks.each()) found.add(user.id)
    ids.value = found
  }
  // Blocking works without the list.
  load().catch(() => {})

  return {
    ids,
    async add(userId: string) {
      await client.blocks.add(userId)
      ids.value = new Set([...ids.value, userId])
    },
    async remove(userId: string) {
      await client.blocks.remove(userId)
      ids.value = new Set([...ids.value].filter((id) => id !== userId))
    },
  }
}
