import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AwsClient } from 'aws4fetch'
import { memoryFolder, temporaryDirectory } from './directory.ts'
import { freePort } from './process.ts'
import { folders } from './tools.ts'
import { waitFor } from './wait.ts'

const [key, secret, bucket] = ['hostline', 'secret', 'backups']

/** An empty bucket of radosgw, on a Ceph cluster of one monitor and one store, which keeps up to 1 GiB in memory. */
export async function startRadosgw() {
  await using parts = new AsyncDisposableStack()
  const { path } = parts.use(temporaryDirectory(memoryFolder()))
  const cluster = createCluster(path)
  const monitor = `v2:127.0.0.1:${await freePort()}`
  writeFileSync(join(path, 'ceph.conf'), configuration(path, monitor))
  for (const folder of ['mon', 'osd']) mkdirSync(join(path, folder))

  const known = ['--public-addrv', monitor, '--keyring', '/dev/null']
  await cluster.run('ceph-mon', '--mkfs', '-i', 'a', ...known)
  parts.use(cluster.start('ceph-mon', '-i', 'a'))
  const store = crypto.randomUUID()
  await cluster.run('ceph', 'osd', 'new', store, '0')
  await cluster.run('ceph-osd', '--mkfs', '-i', '0', '--osd-uuid', store)
  parts.use(cluster.start('ceph-osd', '-i', '0'))
  const keys = ['--access-key', key, '--secret-key', secret]
  await cluster.run('radosgw-admin', 'user', 'create', '--uid=a', '--display-name=a', ...keys)
  const port = await freePort()
  // Without tcp_nodelay a quick response with a body takes 40 ms.
  const frontend = `beast endpoint=127.0.0.1:${port} tcp_nodelay=1`
  parts.use(cluster.start('radosgw', '-n', 'client.admin', '--rgw-frontends', frontend))
  await createBucket(`http://127.0.0.1:${port}`)

  const started = parts.move()
  return {
    url: `s3://${key}:${secret}@127.0.0.1:${port}/${bucket}/house?region=eu-west-1&tls=off`,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  }
}

function configuration(path: string, monitor: string): string {
  return `[global]
fsid = ${crypto.randomUUID()}
mon host = ${monitor}
public addr = 127.0.0.1
cluster addr = 127.0.0.1
run dir = ${path}
mon data = ${path}/mon
osd data = ${path}/osd
log file = ${path}/$name.log
admin socket =
auth cluster required = none
auth service required = none
auth client required = none
# radosgw wants encryption otherwise, which there is not without keys.
ms mon client mode = crc
osd objectstore = memstore
osd pool default size = 1
osd pool default pg num = 1
mon allow pool size one = true
# Each new pool waits for this, a second by default.
paxos propose interval = 0.02
# When news of a pool is missed, the next look is after this; 5 seconds by default.
objecter tick interval = 0.3
rgw thread pool size = 64
`
}

/** Runs Ceph programs with the configuration in a folder; they end with this process, also when it is killed. */
function createCluster(path: string) {
  const options = {
    env: { CEPH_CONF: join(path, 'ceph.conf'), PATH: folders },
    stdout: 'ignore',
    stderr: 'pipe',
  } as const
  const bound = ['setpriv', '--pdeathsig', 'KILL']
  return {
    async run(...command: string[]) {
      const child = Bun.spawn([...bound, ...command], { ...options, timeout: 60_000 })
      const errors = await child.stderr.text()
      if ((await child.exited) === 0) return
      throw new Error(`${command.join(' ')} failed: ${errors}${readLogs(path)}`)
    },
    /** A daemon that ends with its scope. */
    start(...command: string[]) {
      const child = Bun.spawn([...bound, ...command, '-f'], { ...options, stderr: 'ignore' })
      return {
        async [Symbol.asyncDispose]() {
          child.kill('SIGKILL')
          await child.exited
        },
      }
    },
  }
}

function readLogs(path: string): string {
  const names = [...new Bun.Glob('*.log').scanSync(path)]
  return names
    .map((name) => `\n${name}: ${readFileSync(join(path, name), 'utf8').slice(-1_000)}`)
    .join('')
}

async function createBucket(endpoint: string) {
  await waitFor(() => fetch(endpoint).catch(() => undefined), 'radosgw')
  const client = new AwsClient({ accessKeyId: key, secretAccessKey: secret, service: 's3' })
  const { status } = await client.fetch(`${endpoint}/${bucket}`, { method: 'PUT' })
  if (status !== 200) throw new Error(`radosgw made no bucket: ${status}`)
}
