import { availableParallelism } from 'node:os'
import { join } from 'node:path'

const pinned = availableParallelism() > 1 && Bun.which('taskset') !== null
export const hostlineCommand = ['bun', join(import.meta.dir, '../src/main.ts')]

/** Puts a command on one core, where that can be done. */
export function pin(core: number): string[] {
  return pinned ? ['taskset', '-c', String(core)] : []
}

/** Starts a server on the first core, on a free port, without request limits. */
export async function startProcess(command: string[], environment: Record<string, string>) {
  const server = Bun.spawn([...pin(0), ...command], {
    stdout: 'pipe',
    stderr: 'inherit',
    env: {
      PATH: process.env['PATH'] ?? '',
      PORT: '0',
      HOST: '127.0.0.1',
      LOG_FORMAT: 'json',
      RATE_LIMIT_LOGIN: 'off',
      RATE_LIMIT_REGISTER: 'off',
      RATE_LIMIT_USER: 'off',
      RATE_LIMIT_ANONYMOUS: 'off',
      RATE_LIMIT_FRAMES: 'off',
      ...environment,
    },
  })
  return {
    base: `http://127.0.0.1:${await portOf(server.stdout)}`,
    pid: server.pid,
    async stop() {
      server.kill()
      await server.exited
    },
  }
}

/** Hostline itself on a data directory. */
export const startBenchServer = (directory: string) =>
  startProcess(hostlineCommand, { DATA_DIR: directory })

/** The port in the first lines that a server prints. */
async function portOf(output: ReadableStream<Uint8Array>): Promise<number> {
  const decoder = new TextDecoder()
  const reader = output.getReader()
  let text = ''
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    text += decoder.decode(chunk.value, { stream: true })
    const port = /"port":(\d+)|:(\d+)"/.exec(text)
    if (port) return Number(port[1] ?? port[2])
  }
  throw new Error(`the server did not start: ${text}`)
}
