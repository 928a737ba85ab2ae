import { describe, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { entries, misspeltNames, readConfig } from '../src/config.ts'
import { definitions, type SettingName, settingNames } from '../src/settings.ts'
import { temporaryDirectory } from './support/directory.ts'

function mistakes(environment: Record<string, string>): string[] {
  try {
    readConfig(environment, false)
    return []
  } catch (error) {
    return (error as Error).message.split('\n')
  }
}

test('every setting has a default', () => {
  const config = readConfig({}, true)
  expect(config).toMatchObject({
    port: 3000,
    host: '0.0.0.0',
    publicUrl: 'http://localhost:3000',
    issuer: 'localhost',
    dataDir: join(process.cwd(), 'data'),
    trustedProxies: [],
    corsOrigins: [],
    tls: undefined,
    limits: {
      login: { count: 5, windowMilliseconds: 900_000 },
      register: { count: 3, windowMilliseconds: 3_600_000 },
      user: { count: 100, windowMilliseconds: 60_000 },
      anonymous: { count: 30, windowMilliseconds: 60_000 },
      frames: { count: 10, windowMilliseconds: 1_000 },
    },
    support: { reopenDays: 14, autocloseDays: 7, inbox: undefined },
    logLevel: 'info',
    logFormat: 'pretty',
  })
  expect(readConfig({}, false).logFormat).toBe('json')
})

test('the result cannot be changed', () => {
  const config = readConfig({}, false)
  const parts = [config, config.limits, config.corsOrigins, config.trustedProxies]
  expect(parts.map((part) => Object.isFrozen(part))).toEqual([true, true, true, true])
})

test('the issuer is the host name of the public URL, without its port', () => {
  const { publicUrl, issuer } = readConfig({ PUBLIC_URL: 'https://chat.example.com:8443/' }, false)
  expect([publicUrl, issuer]).toEqual(['https://chat.example.com:8443', 'chat.example.com'])
})

test.each(['::1', '[::1]'])('the host %s is an address without brackets', (HOST) => {
  expect(readConfig({ HOST }, false).host).toBe('::1')
})

describe('each mistake is one clear line', () => {
  const originRule =
    'list origins such as https://app.example.com, without a path or a slash at the end'
  const smtpRule =
    'be an address such as smtp://user:password@mail.example.com:587, with %40 for @, %2F for / and %25 for % in user and password'
  test.each([
    ['PORT', '70000', 'be a whole number from 0 to 65535, not "70000"'],
    ['PORT', 'http', 'be a whole number from 0 to 65535, not "http"'],
    ['PUBLIC_URL', 'chat.example.com', 'be an http or https address without a path'],
    ['PUBLIC_URL', 'https://x.example/app', 'be an http or https address without a path'],
    ['PUBLIC_URL', 'https://x.example/?app', 'be an http or https address without a path'],
    ['PUBLIC_URL', 'https://x.example/#app', 'be an http or https address without a path'],
    ['PUBLIC_URL', 'https://ada@x.example', 'be an http or https address without a path'],
    ['HOST', ' ', 'not be empty, not " "'],
    [
      'TRUSTED_PROXIES',
      '10.0.0.0/8, nginx',
      'list CIDR blocks or addresses, not "10.0.0.0/8, nginx"',
    ],
    ['TRUSTED_PROXIES', '10.1', 'list CIDR blocks or addresses, not "10.1"'],
    ['CORS_ORIGINS', 'https://a.example, *', originRule],
    ['CORS_ORIGINS', 'https://a.example/', originRule],
    ['SMTP_URL', 'smtp://ada@example.com:pw@mail.example.com', smtpRule],
    ['SMTP_URL', 'https://mail.example.com', smtpRule],
    ['SMTP_URL', 'smtp:mail', smtpRule],
    ['SMTP_URL', 'smtp://ada:100%@mail.example.com', smtpRule],
    ['RATE_LIMIT_LOGIN', '5', 'be N/window such as 100/1m, with N above 0, or off, not "5"'],
    ['RATE_LIMIT_USER', '0/1m', 'be N/window such as 100/1m, with N above 0, or off, not "0/1m"'],
    [
      'RATE_LIMIT_FRAMES',
      '10/1d',
      'be N/window such as 100/1m, with N above 0, or off, not "10/1d"',
    ],
    ['SUPPORT_REOPEN_DAYS', '-1', 'be a whole number from 0 to 3650, not "-1"'],
    ['SUPPORT_AUTOCLOSE_DAYS', '1.5', 'be a whole number from 0 to 3650, not "1.5"'],
    ['SUPPORT_INBOX', 'desk', 'be an e-mail address, not "desk"'],
    ['MAIL_FROM', 'x', 'be an address such as noreply@example.com, not "x"'],
    ['CHAT_REQUIRE_ACTIVE_CALL', 'yes', 'be one of true, false, not "yes"'],
    ['FCM_URL', 'fcm', 'be an http or https address'],
    ['FCM_URL', 'https://x.example/?project', 'be an http or https address'],
    ['FCM_URL', 'https://x.example/#project', 'be an http or https address'],
    ['FILES_MAX_MB', '0', 'be a whole number from 1 to 10000, not "0"'],
    [
      'FCM_SERVICE_ACCOUNT',
      '/nowhere.json',
      'be JSON, JSON in base64, or the path of a readable file',
    ],
    [
      'FCM_SERVICE_ACCOUNT',
      '{}',
      'be the JSON key file of a service account, with project_id, client_email, private_key, token_uri',
    ],
    [
      'WEB_PUSH_HOSTS',
      'push.example.com,https://x',
      'list host names in lower case such as push.example.com, not "push.example.com,https://x"',
    ],
    ['LOG_LEVEL', 'loud', 'be one of debug, info, warn, error, not "loud"'],
    ['LOG_FORMAT', 'xml', 'be one of pretty, json, not "xml"'],
  ])('%s=%s', (name, value, reason) => {
    expect(mistakes({ [name]: value })).toEqual([`${name} must ${reason}`])
  })

  const secretive = Object.entries(entries)
    .filter(([name]) => /URL|TOKEN|KEY|CERT|ACCOUNT|ORIGINS|SECRET|PASSWORD/.test(name))
    .map(([name]) => name)

  test.each(secretive)('the value of %s is not repeated, because it may be a secret', (name) => {
    const values = [
      'https://ada:hunter2@x.example/?key=hunter2',
      Buffer.from('{"private_key":"hunter2"').toString('base64'),
      '-----BEGIN PRIVATE KEY-----\nhunter2\n',
    ]
    for (const value of values) {
      const output = mistakes({ [name]: value }).join('\n')
      expect(output).not.toContain('hunter2')
      expect(output).not.toContain(value)
    }
  })

  test('a PEM where a path belongs is refused without printing it', () => {
    const pem = '-----BEGIN PRIVATE KEY-----\nhunter2\n'
    expect(mistakes({ TLS_CERT: pem, TLS_KEY: pem })).toEqual([
      'TLS_CERT must be the path of a PEM file',
      'TLS_KEY must be the path of a PEM file',
    ])
  })

  test('all of them are reported together', () => {
    const lines = mistakes({
      PORT: 'x',
      LOG_LEVEL: 'x',
      TLS_CERT: '/cert.pem',
      REPLICA_ACK: 'bucket',
    })
    expect(lines).toHaveLength(4)
    expect(lines).toContain('REPLICA_ACK=bucket needs REPLICA_S3_URL')
    expect(lines).toContain('TLS_CERT and TLS_KEY must be set together')
  })
})

test('the key file of push is accepted as JSON, in base64, or by path', () => {
  using directory = temporaryDirectory()
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const keyFile = JSON.stringify({
    project_id: 'p',
    client_email: 'push@example.com',
    private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    token_uri: 'https://oauth.example.com/token',
  })
  const path = join(directory.path, 'key.json')
  writeFileSync(path, keyFile)
  for (const given of [keyFile, Buffer.from(keyFile).toString('base64'), path]) {
    expect(readConfig({ FCM_SERVICE_ACCOUNT: given }, false).fcm?.account.projectId).toBe('p')
  }
})

test.each([
  ['SMTP_URI', 'SMTP_URL'],
  ['DATADIR', 'DATA_DIR'],
  ['RATE_LIMIT_LOGINS', 'RATE_LIMIT_LOGIN'],
  ['RATE_LIMIT_ANON', 'RATE_LIMIT_ANONYMOUS'],
  ['public_url', 'PUBLIC_URL'],
  ['port', 'PORT'],
  ['SMPT_URL', 'SMTP_URL'],
  ['REPLCA_S3_URL', 'REPLICA_S3_URL'],
  ['BACKUPS_S3_URL', 'BACKUP_S3_URL'],
  ['TRUSTED_PROXYES', 'TRUSTED_PROXIES'],
  ['FILES_MAX', 'FILES_MAX_MB'],
  ['FILES_QUOTA', 'FILES_QUOTA_MB'],
  ['SUPPORT_REOPEN', 'SUPPORT_REOPEN_DAYS'],
  ['TLS_CERTIFICATE', 'TLS_CERT'],
])('%s is reported as a misspelt %s', (name, meant) => {
  expect(misspeltNames({ [name]: 'secret', HOME: '/', PATH: '/', LANG: 'C' })).toEqual([
    { name, meant },
  ])
})

test('variables of other programs are not reported as misspelt', () => {
  const others = ['LOGNAME', 'MAIL', 'MAIL_HOST', 'LOG_CHANNEL', 'HOSTNAME', 'DATABASE_URL', 'POST']
  expect(misspeltNames(Object.fromEntries(others.map((it) => [it, ''])))).toEqual([])
})

test('no known setting is reported as a misspelling of another', () => {
  expect(misspeltNames(Object.fromEntries(Object.keys(entries).map((it) => [it, ''])))).toEqual([])
})

test('the README has a row for every entry, in order, with its default and a meaning', () => {
  const readme = readFileSync(join(import.meta.dir, '../README.md'), 'utf8')
  const [, afterHead = ''] = readme.split('| name | default | meaning |\n|---|---|---|\n')
  const [table = ''] = afterHead.split('\n\n')
  const rows = table.split('\n').map((row) => {
    const [, name, shown] = /^\| `(\w+)` \| (\S.*) \| \S.* \|$/.exec(row) ?? []
    return [name, shown]
  })
  // An entry without a fallback has none, or one that depends on others.
  const expected = Object.entries(entries).map(([name, { fallback }]) => [
    name,
    fallback || expect.any(String),
  ])
  expect(rows).toEqual(expected)
})

test('the table of settings in the README is current', () => {
  const readme = readFileSync(join(import.meta.dir, '../README.md'), 'utf8')
  const config = readConfig({}, false)
  const ofEntries: Partial<Record<SettingName, string>> = {
    platform_name: 'host of `PUBLIC_URL`',
    registration: '`REGISTRATION`',
  }
  const rows = settingNames.map((name) => {
    const { fallback, doc } = definitions[name]
    const value = fallback(config)
    const text = typeof value === 'object' ? '–' : String(value)
    return `| \`${name}\` | ${ofEntries[name] ?? text} | ${doc} |`
  })
  expect(readme).toContain(
    ['| setting | default | meaning |', '|---|---|---|', ...rows, ''].join('\n'),
  )
})

test('the example for systemd is valid and names existing settings', () => {
  const example = readFileSync(join(import.meta.dir, '../examples/hostline.env'), 'utf8')
  const values = [...example.matchAll(/^(\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [
    name,
    value.replace(/^"(.*)"$/, '$1'),
  ])
  expect(Object.keys(entries)).toEqual(expect.arrayContaining(values.map(([name]) => name)))
  expect(mistakes(Object.fromEntries(values))).toEqual([])
})
