import { rmSync } from 'node:fs'
import { join } from 'node:path'

export const socketFile = 'hostline.sock'

const onlyOwner = 0o177
// A snapshot, or counting what retention would delete, can take minutes.
const noTimeout = 0

type App = { fetch: (request: Request) => Response | Promise<Response> }

/** Only the directory's owner can open the socket. */
export function listenForCommands(app: App, dataDir: string) {
  const path = join(dataDir, socketFile)
  rmSync(path, { force: true }) // left by a killed server
  const before = process.umask(onlyOwner)
  try {
    return Bun.serve({
      unix: path,
      idleTimeout: noTimeout as never, // missing in the runtime's types for Unix sockets
      development: false,
      fetch: (request) => app.fetch(asOperator(request)),
    })
  } finally {
    process.umask(before)
  }
}

// Requests of commands on this machine, with the system name of the person who runs the command.
const operators = new WeakMap<Request, string>()

export const operatorHeader = 'x-operator'

export function asOperator(request: Request): Request {
  operators.set(request, request.headers.get(operatorHeader) || 'unknown')
  return request
}

export const operatorOf = (request: Request): string | undefined => operators.get(request)
