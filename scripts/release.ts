import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { version } from '../package.json' with { type: 'json' }
import { build } from './build.ts'
import { packClient } from './build-client.ts'
import { createSbom } from './sbom.ts'

/** Builds dist/release: the executables of all platforms, their SBOM, the client, the files for operators and the checksums. */

const targets = ['linux-x64', 'linux-arm64', 'darwin-arm64', 'windows-x64'] as const
const forOperators = [
  'CHANGELOG.md',
  'README.md',
  'docs/alerts.yml',
  'docs/operations.md',
  'examples/fail2ban-filter.conf',
  'examples/hostline-backup.service',
  'examples/hostline-backup.timer',
  'examples/hostline.env',
  'examples/hostline.service',
]
const project = fileURLToPath(new URL('..', import.meta.url))
const folder = join(project, 'dist/release')

rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })
let inputs: string[] = []
for (const target of targets) {
  inputs = await buildFor(target)
}
writeFileSync(
  join(folder, `hostline-${version}.cdx.json`),
  `${JSON.stringify(createSbom(inputs), null, 2)}\n`,
)
packClient(folder)
for (const path of forOperators) copyFileSync(join(project, path), join(folder, basename(path)))
const checksums = await Promise.all(readdirSync(folder).sort().map(checksum))
writeFileSync(join(folder, 'SHA256SUMS'), checksums.join(''))
console.log(checksums.join(''))

async function buildFor(target: (typeof targets)[number]) {
  const extension = target.startsWith('windows') ? '.exe' : ''
  try {
    return await build(join(folder, `hostline-${version}-${target}${extension}`), `bun-${target}`)
  } catch (cause) {
    rmSync(folder, { recursive: true })
    console.error(`no release: hostline for ${target} was not built:`, cause)
    process.exit(1)
  }
}

/** A line for `sha256sum -c`. */
async function checksum(name: string) {
  const bytes = await Bun.file(join(folder, name)).bytes()
  return `${createHash('sha256').update(bytes).digest('hex')}  ${name}\n`
}
