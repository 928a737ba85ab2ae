import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { asOperator } from './http/operator.ts'

export const socketFile = 'hostline.sock'

const onlyOwner = 0o177
// A webhook's endpoint may take 15 seconds to answer a test.
const idleTimeoutSeconds = 30

type App = { fetch: (request: Request) => Response | Promise<Response> }

/** Answers commands of this machine over a socket in the data directory that its owner alone can open.
 *  @returns how to stop once what runs is answered */
export function listenForCommands(app: App, dataDir: string): () => Promise<void> {
  const path = join(dataDir, socketFile)
  rmSync(path, { force: true }) // of a server that was killed
  const before = process.umask(onlyOwner)
  try {
    const server = Bun.serve({
      unix: path,
      idleTimeout: idleTimeoutSeconds as never, // missing in the runtime's types for Unix sockets
      development: false,
      fetch: (request) => app.fetch(asOperator(request)),
    })
    return () => server.stop()
  } finally {
    process.umask(before)
  }
}
