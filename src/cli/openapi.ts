import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../config.ts'
import { createLog } from '../lib/log.ts'
import { openService } from '../serve.ts'
import type { Terminal } from './terminal.ts'
import { refuseArguments } from './usage.ts'

/** `hostline openapi`: prints the API description, from the same routes that are served, over an empty database. */
export async function openapi(args: string[], terminal: Terminal): Promise<void> {
  refuseArguments(args)
  const config = readConfig(terminal.environment, terminal.isInteractive)
  const log = createLog({ level: 'error', format: 'pretty', now: Date.now, write: terminal.err })
  const dataDir = mkdtempSync(join(tmpdir(), 'hostline-openapi-'))
  const service = await openService({ ...config, dataDir }, log, (error) => {
    throw error
  })
  const answer = await service.app.handle(new Request('http://localhost/v1/openapi.json'))
  terminal.out(JSON.stringify(await answer.json(), null, 2))
  await service.close()
  rmSync(dataDir, { recursive: true })
}
