import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Config, misspeltNames, readConfig } from '../config.ts'
import { StartError } from '../lib/errors.ts'
import { createLog, type Log } from '../lib/log.ts'
import { handOverDeadlineMilliseconds, stopDeadlineMilliseconds } from '../listen.ts'
import { openService, serve } from '../serve.ts'
import { openNotify, reportReady } from '../systemd.ts'
import { build } from '../version.ts'
import { terminalLog } from './call.ts'
import { verifyBeside } from './replica.ts'
import { refuseArguments, type Terminal } from './terminal.ts'

/** A second signal ends it at once. */
export async function serveUntilSignal(args: string[], terminal: Terminal): Promise<void> {
  await run(readAlone(args, terminal), terminal, false)
}

export async function standby(args: string[], terminal: Terminal): Promise<void> {
  const config = readAlone(args, terminal)
  if (!config.replica) throw new StartError('a standby needs REPLICA_S3_URL')
  await run(config, terminal, true)
}

function readAlone(args: string[], { environment, isInteractive }: Terminal): Config {
  refuseArguments(args)
  return readConfig(environment, isInteractive)
}

async function run(config: Config, terminal: Terminal, isStandby: boolean) {
  const log = createLog({
    level: config.logLevel,
    format: config.logFormat,
    now: Date.now,
    write: (line) => process.stdout.write(line),
  })
  // Registered first, because an unhandled SIGHUP ends the process.
  let reload = () => {}
  process.on('SIGHUP', () => reload())
  // The server must continue when the log cannot be written; a command ends then.
  process.stdout.removeAllListeners('error').on('error', () => {})
  for (const { name, meant } of misspeltNames(terminal.environment)) {
    log.warn(`${name} is not a configuration entry: did you mean ${meant}?`)
  }
  // Registered before the log reports that the server listens. A standby has nothing to finish.
  const stopped = stopSignal(log)
  const { NOTIFY_SOCKET, WATCHDOG_USEC } = terminal.environment
  const notify = openNotify(NOTIFY_SOCKET)
  const substitutes = {
    onStandby(reloadCertificate: () => void) {
      reload = reloadCertificate
      reportReady(notify, WATCHDOG_USEC)
    },
    verifyReplica: () => verifyBeside(config.dataDir, terminal.environment),
  }
  const running = await Promise.race([serve(config, log, substitutes, isStandby), stopped])
  if (!running) process.exit(0)
  reload = running.reloadCertificate
  reportReady(notify, WATCHDOG_USEC)
  const { port, setUpLink } = running
  log.info(`hostline ${build} listens on ${config.host}:${port}`, { data_dir: config.dataDir })
  if (config.smtpUrl === undefined) {
    log.warn('no SMTP_URL: mails are written to this log instead of being sent')
  }
  if (setUpLink !== undefined) {
    log.info('there is no admin yet: create one within 30 minutes', { link: setUpLink })
  }
  const handedOver = running.handOver.then(() => {
    log.info('handing over')
    return handOverDeadlineMilliseconds
  })
  const ended = stopped.then(() => stopDeadlineMilliseconds)
  await running.stop(await Promise.race([ended, handedOver]))
  log.info('stopped')
  // Requests to a bucket that hangs would keep the process alive. The last lines are written first.
  process.stdout.write('', () => process.exit(0))
}

function stopSignal(log: Log): Promise<void> {
  return new Promise((resolve) => {
    let signals = 0
    for (const name of ['SIGTERM', 'SIGINT'] as const) {
      process.on(name, () => {
        signals++
        if (signals > 1) process.exit(1)
        log.info('stopping', { signal: name })
        resolve()
      })
    }
  })
}

export async function openapi(args: string[], terminal: Terminal): Promise<void> {
  const config = readAlone(args, terminal)
  const dataDir = mkdtempSync(join(tmpdir(), 'hostline-openapi-'))
  const service = await openService({ ...config, dataDir }, terminalLog(terminal), (error) => {
    throw error
  })
  const answer = await service.app.handle(new Request('http://localhost/v1/openapi.json'))
  const description = await answer.json()
  await service.close()
  rmSync(dataDir, { recursive: true })
  terminal.out(JSON.stringify(description, null, 2))
}
