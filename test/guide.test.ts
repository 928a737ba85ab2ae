import { expect, test } from 'bun:test'
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { packClient } from '../scripts/build-client.ts'
import { systemClock } from '../src/lib/clock.ts'
import { type Consumer, createConsumer } from './support/consumers.ts'
import { executable } from './support/executable.ts'
import { testAtLength } from './support/faults.ts'
import { freePort, startServer } from './support/process.ts'
import { startGoogle } from './support/push-services.ts'
import { tools } from './support/tools.ts'
import { waitFor } from './support/wait.ts'

/** Follows docs/guide.md from top to bottom with one shell, a server, and files saved under the names in their first
 *  lines. A `text` block is the expected output of the shell block before it, a `json` block the expected push; `…`
 *  matches anything. */

type Block = { note: string; language: string; text: string }

const blocks = blocksOf(readFileSync(join(import.meta.dir, '../docs/guide.md'), 'utf8'))

function blocksOf(guide: string): Block[] {
  const found = guide.matchAll(/(?:^<!-- (.+?) -->\n)?^```(\w+)\n(.*?)^```$/gms)
  return [...found].map(([, note = '', language = '', text = '']) => ({ note, language, text }))
}

const isRun = ({ note, language }: Block) =>
  !note.startsWith('not run') && ['sh', 'text', 'js', 'json'].includes(language)

testAtLength.skipIf(!tools.curl)('the guide produces the results that it shows', async () => {
  await using reader = await createReader()
  for (const [n, block] of blocks.entries()) {
    const next = blocks[n + 1]
    if (isRun(block)) await reader.take(block, next?.language === 'text' ? next.text : '')
  }
})

// They need a build, the generators, a browser's push service, another browser, or a phone.
test('few blocks of the guide are not run', () => {
  const languages = blocks.filter((block) => !isRun(block)).map(({ language }) => language)
  expect(languages).toEqual(['sh', 'html', 'sh', 'js', 'tsx'])
})

/** A reader with a checkout in the folder `hostline`, and registry packages where Node finds them. */
async function createReader() {
  const home = createConsumer()
  const google = startGoogle(systemClock)
  const checkout = await checkOut(home)
  const ports = { 3000: await freePort(), 4000: await freePort() }
  const shell = startShell(checkout, home.path('.'))
  let server: Awaited<ReturnType<typeof startServer>> | undefined

  const here = (text: string) =>
    text
      .replaceAll('localhost:3000', `localhost:${ports[3000]}`)
      .replaceAll(/(?<=localhost:|listen\()4000/g, String(ports[4000]))

  async function serve(command: string) {
    const push = { FCM_SERVICE_ACCOUNT: google.keyFile, FCM_URL: google.url }
    server = await startServer({
      command: ['bash', '-c', `exec env ${command}`],
      cwd: checkout,
      environment: { PORT: String(ports[3000]), ...push, ...usualLimits },
    })
  }

  async function mustBePushed(shown: string) {
    const { message } = await waitFor(() => google.sends[0], 'a push')
    expect(JSON.stringify(message, null, 2)).toMatch(patternOf(shown))
  }

  return {
    async take({ note, language, text }: Block, shown: string): Promise<void> {
      if (note === 'the server') return serve(text)
      if (language === 'sh') return shell.run(here(text), patternOf(shown))
      if (language === 'json') return mustBePushed(text)
      if (language === 'js') home.write({ [`app/${nameOf(text)}`]: here(text) })
    },
    async [Symbol.asyncDispose]() {
      await shell.end()
      await server?.[Symbol.asyncDispose]()
      await google[Symbol.asyncDispose]()
      home[Symbol.dispose]()
    },
  }
}

/** The guide must work within the default limits. */
const usualLimits = {
  RATE_LIMIT_LOGIN: '',
  RATE_LIMIT_REGISTER: '',
  RATE_LIMIT_USER: '',
  RATE_LIMIT_ANONYMOUS: '',
  RATE_LIMIT_FRAMES: '',
}

async function checkOut(home: Consumer) {
  const checkout = home.path('hostline')
  mkdirSync(join(checkout, 'dist'), { recursive: true })
  symlinkSync((await executable()).path, join(checkout, 'dist/hostline'))
  packClient(join(checkout, 'client/dist'))
  return checkout
}

const nameOf = (text: string) => /^\/\/ (\S+)\n/.exec(text)?.[1] ?? 'without a name'

function patternOf(shown: string) {
  const literal = shown.trim().replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
  return new RegExp(`^${literal.replaceAll('…', '.*')}$`)
}

/** A shell that is kept from block to block. */
function startShell(cwd: string, home: string) {
  const env = {
    PATH: `${home}/node_modules/node22/bin:${process.env['PATH']}`,
    HOME: home,
    MIN_FREE_MB: '0',
    npm_config_audit: 'false',
    npm_config_loglevel: 'error',
    npm_config_fund: 'false',
    npm_config_update_notifier: 'false',
  }
  // A process group of its own, so that background processes end with it.
  const bash = Bun.spawn(['bash'], { cwd, env, detached: true, stdin: 'pipe', stdout: 'pipe' })
  const heard = listen(bash.stdout)
  bash.stdin.write('exec 2>&1\n')

  return {
    /** Runs a block and waits until its output, background processes included, matches. */
    async run(block: string, expected: RegExp) {
      heard.forget()
      bash.stdin.write(`${block}\necho '${endOfBlock.trim()}'\n`)
      await waitFor(() => heard.text().includes(endOfBlock), `the end of: ${block}`)
      const said = () => heard.text().replace(endOfBlock, '').replaceAll('\r', '').trim()
      const isSaid = () => expected.test(said())
      await waitFor(isSaid).catch(() => expect(`${block}\n${said()}`).toMatch(expected))
    },
    async end() {
      process.kill(-bash.pid)
      await bash.exited
    },
  }
}

const endOfBlock = '<end of block>\n'

function listen(stream: ReadableStream<Uint8Array>) {
  let text = ''
  void (async () => {
    const decoder = new TextDecoder()
    for await (const part of stream) text += decoder.decode(part, { stream: true })
  })()
  return {
    text: () => text,
    forget() {
      text = ''
    },
  }
}
