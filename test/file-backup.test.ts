import { Database } from 'bun:sqlite'
import { afterAll, expect, test } from 'bun:test'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { openToInspect } from '../src/db/open.ts'
import { restore } from '../src/db/restore.ts'
import { unseal } from '../src/db/seal.ts'
import { startBucket } from './support/bucket.ts'
import { hostline } from './support/command.ts'
import { temporaryDirectory } from './support/directory.ts'
import { filesIn, upload } from './support/files.ts'
import { startService } from './support/service.ts'
import { waitFor } from './support/wait.ts'

const workshop = temporaryDirectory()
const at = (...path: string[]) => join(workshop.path, ...path)
afterAll(() => workshop[Symbol.dispose]())

const large = new Uint8Array(2_500_000).map((_, n) => n % 251)
const service = await startService()
afterAll(() => service[Symbol.asyncDispose]())
const ada = await service.register()
const uploaded = [
  await upload(service, ada, large),
  await upload(service, ada, ''),
  await upload(service, ada, 'x'),
]
const [whole, empty, small] = uploaded.map(({ body }) => body.id as string)
const contents = (directory: string) =>
  Object.fromEntries(
    filesIn({ directory }).map((id) => [id, readFileSync(join(directory, 'files', id)).length]),
  )
const all = { [String(whole)]: large.length, [String(empty)]: 0, [String(small)]: 1 }

function tablesIn(directory: string): string[] {
  const { sqlite, close } = openToInspect(directory)
  const rows = sqlite.query<{ name: string }, []>(
    "SELECT name FROM sqlite_schema WHERE name LIKE 'backup%'",
  )
  const names = rows.all().map(({ name }) => name)
  close()
  return names
}

test('a backup contains the files, and a restore brings them back', async () => {
  expect(await hostline(['backup', at('one.db')], service.directory)).toMatchObject({
    exitCode: 0,
    err: '',
  })
  expect(readdirSync(workshop.path).filter((name) => name.startsWith('one.db'))).toEqual(['one.db'])
  const target = at('restored')
  // A killed restore left these.
  mkdirSync(join(target, 'files.restoring', 'left'), { recursive: true })
  writeFileSync(join(target, 'hostline.db.restoring'), 'left')
  expect(await hostline(['restore', at('one.db')], target)).toMatchObject({ exitCode: 0, err: '' })
  expect(contents(target)).toEqual(all)
  expect(Buffer.compare(readFileSync(join(target, 'files', String(whole))), large)).toBe(0)
  expect(statSync(join(target, 'files', String(whole))).mode & 0o777).toBe(0o600)
  expect(statSync(join(target, 'files')).mode & 0o777).toBe(0o700)
  // The database has no rows of them left.
  expect(tablesIn(target)).toEqual([])
  expect(statSync(join(target, 'hostline.db')).size).toBeLessThan(
    statSync(at('one.db')).size - large.length,
  )
})

test('a backup with a changed letter is refused, and a sealed one is a plain database', async () => {
  const file = at('changed.db')
  await hostline(['backup', file], service.directory)
  const { sqlite, close } = openToInspect(service.directory)
  const text = sqlite.query<{ email: string }, []>('SELECT email FROM users').get()?.email ?? ''
  close()
  using plain = new Database(file)
  expect(plain.query('PRAGMA integrity_check').values()).toEqual([['ok']])
  const bytes = readFileSync(file)
  const position = bytes.indexOf(text)
  expect(position).toBeGreaterThan(0)
  bytes.write('X', position)
  writeFileSync(file, bytes)
  const { exitCode, err } = await hostline(['restore', file], at('never'))
  expect([exitCode, err]).toEqual([
    1,
    `hostline: ${file} cannot be restored: it is damaged: its content has changed since it was made`,
  ])
  expect(existsSync(at('never', 'hostline.db'))).toBe(false)
})

test('a restore keeps the replaced files aside, with the database', async () => {
  await hostline(['backup', at('over.db')], service.directory)
  const target = at('over')
  await hostline(['restore', at('over.db')], target)
  writeFileSync(join(target, 'files', 'newer'), 'newer')
  const { exitCode, out } = await hostline(['restore', at('over.db'), '--force'], target)
  expect(exitCode).toBe(0)
  expect(contents(target)).toEqual(all)
  const [aside = ''] = readdirSync(target).filter((name) => name.endsWith('-files'))
  expect(aside).toMatch(/^hostline-replaced-.*Z-.*-files$/)
  expect(readdirSync(join(target, aside)).sort()).toEqual([...Object.keys(all), 'newer'].sort())
  expect(out).toContain(`the former content is kept as ${join(target, aside)}`)
})

test('a restore that cannot replace the files leaves the directory as it was', async () => {
  const target = at('mounted')
  await hostline(['backup', at('mounted.db')], service.directory)
  await hostline(['restore', at('mounted.db')], target)
  // The directory cannot be renamed, as if a disk were mounted there.
  mkdirSync(join(target, 'aside-files', 'in-the-way'), { recursive: true })
  const before = readdirSync(target)
  const options = { isForced: true, asideName: 'aside.db' }
  await expect(restore(at('mounted.db'), target, options)).rejects.toThrow('cannot be restored')
  expect(readdirSync(target)).toEqual(before)
  expect(contents(target)).toEqual(all)
})

test('what a deleted account held leaves the bytes of a restored database as well', async () => {
  await using original = await startService()
  const names = Array.from({ length: 60 }, (_, n) => `forgotten-${n}`)
  const people = await Promise.all(names.map((name) => original.register(name)))
  const leaving = people.slice(0, 3)
  await hostline(['backup', at('crowd.db')], original.directory)
  await hostline(['restore', at('crowd.db')], at('crowd'))
  await using restored = await startService({ dataDir: at('crowd') })
  const hashOf = restored.sqlite.query<{ hash: string }, [string]>(
    'SELECT password_hash AS hash FROM users WHERE id = ?',
  )
  const traces = leaving.flatMap(({ id, email }) => [email, String(hashOf.get(id)?.hash)])
  const traced = () => {
    restored.sqlite.run('PRAGMA wal_checkpoint(TRUNCATE)')
    const bytes = readFileSync(at('crowd', 'hostline.db'))
    return traces.filter((trace) => bytes.includes(trace))
  }
  expect(traced()).toEqual(traces)
  for (const { token } of leaving) {
    const body = { password: 'correct horse' }
    expect((await restored.call('DELETE', '/v1/users/me', { token, body })).status).toBe(204)
  }
  await waitFor(() => traced().length === 0)
})

test('a plain database restores as it is and leaves the files unchanged', async () => {
  const target = at('plain')
  await hostline(['backup', at('plain.db')], service.directory)
  await hostline(['restore', at('plain.db')], target)
  copyFileSync(join(target, 'hostline.db'), at('bare.db'))
  expect(await hostline(['restore', at('bare.db'), '--force'], target)).toMatchObject({
    exitCode: 0,
  })
  expect(contents(target)).toEqual(all)
})

test.each([
  ["UPDATE backup_pieces SET bytes = x'00' WHERE n = 1", 'a file in it is incomplete or changed'],
  ['DELETE FROM backup_pieces WHERE n = 2', 'a file in it is incomplete or changed'],
  ["UPDATE backup_files SET id = '../' || substr(id, 4)", 'has an invalid name'],
])('a backup with a corrupt file is refused, and everything stays (%s)', async (spoil, reason) => {
  const target = at('spoilt')
  rmSync(target, { recursive: true, force: true })
  await hostline(['backup', at('spoilt.db')], service.directory)
  await hostline(['restore', at('spoilt.db')], target)
  // Like a backup of 0.1, which has no checksum of its own.
  await unseal(at('spoilt.db'))
  const backup = new Database(at('spoilt.db'))
  backup.run(spoil)
  backup.close()
  const { exitCode, err } = await hostline(['restore', at('spoilt.db'), '--force'], target)
  expect([exitCode, err]).toEqual([1, expect.stringContaining(reason)])
  expect(contents(target)).toEqual(all)
  expect(readdirSync(target).sort()).toEqual(['files', 'hostline.db', 'hostline.lock'])
})

test('a missing file is reported and left out; unfinished uploads are not in a backup', async () => {
  await using own = await startService()
  const person = await own.register()
  const lost = await upload(own, person, 'lost')
  await upload(own, person, 'kept')
  rmSync(join(own.directory, 'files', lost.body.id))
  own.sqlite.run('UPDATE files SET stored_at = NULL WHERE size = 99')
  const { exitCode, err } = await hostline(['backup', at('missing.db')], own.directory)
  expect([exitCode, err]).toEqual([0, expect.stringContaining('1 uploaded files are missing')])
  await hostline(['restore', at('missing.db')], at('missing'))
  expect(Object.values(contents(at('missing')))).toEqual([4])
})

test('a file that is there and cannot be read fails the backup, instead of missing in it', async () => {
  await using own = await startService()
  await upload(own, await own.register(), 'kept')
  const files = join(own.directory, 'files')
  renameSync(files, `${files}.away`)
  writeFileSync(files, '') // a path that cannot be looked into, also for root
  const { exitCode, err } = await hostline(['backup', at('unread.db')], own.directory)
  expect([exitCode, err]).toEqual([1, expect.stringMatching(/^hostline: no backup .*: ENOTDIR: /)])
  expect(existsSync(at('unread.db'))).toBe(false)
})

test('rows with paths and symbolic links add no foreign file to a backup', async () => {
  await using own = await startService()
  const person = await own.register()
  const [path, link] = [await upload(own, person, 'path'), await upload(own, person, 'link')]
  const elsewhere = join(own.directory, 'elsewhere')
  writeFileSync(elsewhere, 'a grab')
  own.sqlite.run("UPDATE files SET id = '../elsewhere' WHERE id = ?", [path.body.id])
  rmSync(join(own.directory, 'files', link.body.id))
  symlinkSync(elsewhere, join(own.directory, 'files', link.body.id))
  const { exitCode, err } = await hostline(['backup', at('paths.db')], own.directory)
  expect([exitCode, err]).toEqual([0, expect.stringContaining('2 uploaded files are missing')])
  expect(readFileSync(at('paths.db')).includes('a grab')).toBe(false)
})

test('a dated backup is copied to the bucket for backups, which keeps the newest, and comes back', async () => {
  await using bucket = await startBucket()
  const environment = { BACKUP_S3_URL: bucket.url }
  const run = (...args: string[]) => hostline(args, service.directory, { environment })
  const [directory, elsewhere] = [at('copied'), at('fetched')]
  for (const path of [directory, elsewhere]) mkdirSync(path)
  for (let n = 0; n < 3; n++) {
    expect(await run('backup', directory, '--keep', '2')).toMatchObject({ exitCode: 0, err: '' })
  }
  const names = readdirSync(directory).sort()
  expect(bucket.keys()).toEqual(names.map((name) => `media/people/${name}`))
  expect((await run('check')).out).toContain('ok     bucket for backups: ')
  const newest = join(elsewhere, String(names[1]))
  expect(await run('backup', elsewhere, '--fetch', 'newest')).toMatchObject({
    exitCode: 0,
    out: `${newest}: restore it with hostline restore ${newest}`,
  })
  expect(
    Buffer.compare(readFileSync(newest), readFileSync(join(directory, String(names[1])))),
  ).toBe(0)
  expect(statSync(newest).mode & 0o777).toBe(0o600)
  expect(await run('backup', elsewhere, '--fetch', 'newest')).toMatchObject({
    exitCode: 1,
    err: `hostline: ${newest} is there already`,
  })
  expect((await run('backup', elsewhere, '--fetch', 'hostline-x.db')).err).toBe(
    `hostline: the bucket has no such backup, but: ${names.join(', ')}`,
  )
  expect((await run('backup', at('nowhere'), '--fetch', 'newest')).err).toBe(
    `hostline: there is no directory ${at('nowhere')}`,
  )
  expect((await run('backup', '/proc', '--fetch', 'newest')).err).toMatch(
    /^hostline: \/proc\/hostline-\S+\.db cannot be written: .*$/,
  )
  expect(await hostline(['restore', newest], at('from-bucket'))).toMatchObject({ exitCode: 0 })
  expect(contents(at('from-bucket'))).toEqual(all)
})

test('a backup that cannot be copied is kept, and the command fails', async () => {
  const environment = { BACKUP_S3_URL: 's3://K:S@127.0.0.1:1/b?tls=off' }
  mkdirSync(at('uncopied'))
  const made = await hostline(['backup', at('uncopied')], service.directory, { environment })
  expect(made).toMatchObject({
    exitCode: 1,
    err: expect.stringMatching(/^hostline: the bucket 127\.0\.0\.1:1\/b: /),
  })
  expect(readdirSync(at('uncopied'))).toEqual([expect.stringMatching(/^hostline-.*\.db$/)])
})

test('files in a bucket are not in a backup', async () => {
  const environment = { FILES_S3_URL: 's3://K:S@127.0.0.1:1/b?tls=off' }
  const { exitCode } = await hostline(['backup', at('bucket.db')], service.directory, {
    environment,
  })
  expect(exitCode).toBe(0)
  await hostline(['restore', at('bucket.db')], at('bucket'))
  expect(existsSync(at('bucket', 'files'))).toBe(false)
})
