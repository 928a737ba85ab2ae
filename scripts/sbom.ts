import { readFileSync } from 'node:fs'
import lock from '../bun.lock'
import { license, name, version } from '../package.json' with { type: 'json' }

/** The contents of an executable as CycloneDX 1.6: the Bun runtime and the packages of the bundled files.
 *  @param inputs paths of those files */
export function createSbom(inputs: readonly string[]) {
  const folders = inputs.flatMap(
    (path) => /^.*node_modules\/(@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? [],
  )
  const components = [bun, ...[...new Set(folders)].sort().map(packageIn)]
  // No serial number and no time: a build from the same sources gives the same file.
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: {
        type: 'application',
        'bom-ref': name,
        name,
        version,
        licenses: [{ license: { id: license } }],
      },
    },
    components,
    dependencies: [
      { ref: name, dependsOn: components.map((component) => component['bom-ref']) },
      ...components.map((component) => ({ ref: component['bom-ref'] })),
    ],
  }
}

const bunPurl = `pkg:npm/bun@${Bun.version}`
const bun = {
  type: 'platform',
  'bom-ref': bunPurl,
  name: 'bun',
  version: Bun.version,
  description: 'JavaScript runtime, with the libraries that it links',
  licenses: [
    { license: { id: 'MIT' } },
    {
      license: {
        name: 'Licenses of the libraries that Bun links',
        url: 'https://bun.com/docs/project/license',
      },
    },
  ],
  purl: bunPurl,
}

/** @param folder such as `node_modules/a/node_modules/b`, which is `a/b` in bun.lock */
function packageIn(folder: string) {
  const manifest = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'))
  const key = folder.replace(/^.*?node_modules\//, '').replaceAll('/node_modules/', '/')
  const integrity = lock.packages[key]?.at(-1)
  if (typeof integrity !== 'string') throw new Error(`bun.lock has no ${key}`)
  const purl = `pkg:npm/${manifest.name.replace('@', '%40')}@${manifest.version}`
  return {
    type: 'library',
    'bom-ref': purl,
    name: manifest.name,
    version: manifest.version,
    description: manifest.description,
    // Hash of the package in the registry.
    hashes: [{ alg: 'SHA-512', content: hexOf(integrity) }],
    licenses: [{ license: { id: manifest.license } }],
    purl,
  }
}

function hexOf(integrity: string) {
  return Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex')
}
