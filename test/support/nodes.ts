import { executable } from './executable.ts'
import { collect, freePort } from './process.ts'
import { waitFor } from './wait.ts'

type NodeOptions = {
  dataDir: string
  /** The URL of the bucket. */
  bucket: string
  /** `['standby']`, or a command; by default it serves. */
  args?: string[]
  /** Both nodes of a pair may be restarted on their port. */
  port?: number
  environment?: Record<string, string>
  /** Another executable than that of the current sources. */
  path?: string | undefined
}

export type ReplicaNode = Awaited<ReturnType<typeof startNode>>

/** The executable on a data directory that is replicated to a bucket, without rate limits. It may serve, follow, or
 *  exit. */
export async function startNode({ dataDir, bucket, args = [], ...options }: NodeOptions) {
  const path = options.path ?? (await executable()).path
  const port = options.port ?? (await freePort())
  const child = Bun.spawn([path, ...args], {
    env: { ...environmentOf(dataDir, bucket), PORT: String(port), ...options.environment },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  let output = ''
  const streams = [child.stdout, child.stderr].map((stream) =>
    collect(stream, (text) => {
      output += text
    }),
  )
  const exited = Promise.all([child.exited, ...streams]).then(([code]) => code)
  const base = `http://127.0.0.1:${port}`
  const isReady = () =>
    fetch(`${base}/readyz`)
      .then(({ ok }) => ok)
      .catch(() => false)

  return {
    base,
    port,
    dataDir,
    pid: child.pid,
    /** Resolves when the output is whole. */
    exited,
    /** Log lines and errors so far. */
    output: () => output,
    isReady,
    /** Resolves when it serves. */
    ready: () => waitFor(isReady, () => `${base} to serve: ${output}`),
    /** Resolves when its output contains the text. */
    says: (text: string) =>
      waitFor(
        () => output.includes(text),
        () => `"${text}" in: ${output}`,
      ),
    async end(signal: NodeJS.Signals = 'SIGKILL') {
      child.kill(signal)
      return await exited
    },
    signal: (signal: NodeJS.Signals) => child.kill(signal),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await child.exited
    },
  }
}

/** Runs a command of the executable beside the nodes. */
export async function command(dataDir: string, bucket: string, args: string[]) {
  const { path } = await executable()
  const child = Bun.spawn([path, ...args], {
    env: environmentOf(dataDir, bucket),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()])
  return { code: await child.exited, out, err }
}

const environmentOf = (dataDir: string, bucket: string): Record<string, string> => ({
  PATH: process.env['PATH'] ?? '',
  HOST: '127.0.0.1',
  LOG_FORMAT: 'json',
  DATA_DIR: dataDir,
  MIN_FREE_MB: '0',
  REPLICA_S3_URL: bucket,
  RATE_LIMIT_LOGIN: 'off',
  RATE_LIMIT_REGISTER: 'off',
  RATE_LIMIT_USER: 'off',
  RATE_LIMIT_ANONYMOUS: 'off',
  RATE_LIMIT_FRAMES: 'off',
})
