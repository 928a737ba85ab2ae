import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { extname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const project = fileURLToPath(new URL('..', import.meta.url))
const folder = join(project, 'src/web')
const pageNames = ['account', 'console', 'demo', 'reference', 'start'] as const
const types: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

export type PageName = (typeof pageNames)[number]
/** Bytes are base64. */
type Asset = { type: string; bytes: string }

export type Pages = {
  /** The HTML of each page. */
  html: Record<PageName, string>
  /** Assets by name; the name contains a hash of the content. */
  assets: Record<string, Asset>
}

/** Bundles the pages of src/web. It runs as a macro while the executable is built, where `Bun.build` is not
 *  available. */
export function buildPages(): Pages {
  return withBundle((output) => {
    const html = Object.fromEntries(
      pageNames.map((name) => [
        name,
        withHead(readFileSync(join(output, name, 'index.html'), 'utf8')),
      ]),
    )
    const names = readdirSync(join(output, 'assets'))
    const assets = Object.fromEntries([
      ...names.map((name) => [name, assetOf(join(output, 'assets', name))]),
      ...[themeScript(), ...fonts()].map(({ name, path }) => [name, assetOf(path)]),
    ])
    return { html: html as Pages['html'], assets } // every page was read
  })
}

/** Sets the theme before anything is shown, and loads the font together with the styles: a page does not use a font that
 *  comes later, because it would move what is shown. */
const withHead = (html: string) =>
  html.replace(
    '<link',
    `<script src="/assets/${themeScript().name}"></script>
<link rel="preload" href="/assets/${fonts()[0]?.name}" as="font" type="font/woff2" crossorigin>
<link`,
  )

/** A script of its own: those of the bundle wait until the page has been read. */
function themeScript() {
  const path = join(folder, 'theme.js')
  const hash = createHash('sha256').update(readFileSync(path)).digest('hex').slice(0, 8)
  return { name: `theme-${hash}.js`, path }
}

/** @returns the source files of the pages, relative to the project */
export function pageInputs(): string[] {
  return withBundle((output) => {
    const { inputs } = JSON.parse(readFileSync(join(output, 'meta.json'), 'utf8'))
    const paths = [
      ...Object.keys(inputs).map((path) => join(folder, path)),
      ...[themeScript(), ...fonts()].map(({ path }) => path),
    ]
    return paths.map((path) => relative(project, path))
  })
}

function withBundle<T>(read: (output: string) => T): T {
  const output = mkdtempSync(join(tmpdir(), 'hostline-pages-'))
  try {
    const command = [process.execPath, 'build', ...options(output)]
    const { exitCode, stderr } = Bun.spawnSync(command, { cwd: folder })
    if (exitCode !== 0) throw new Error(`the pages were not built:\n${stderr}`)
    return read(output)
  } finally {
    rmSync(output, { recursive: true })
  }
}

const options = (output: string) => [
  ...pageNames.map((name) => `./${name}/index.html`),
  `--outdir=${output}`,
  `--metafile=${join(output, 'meta.json')}`,
  '--target=browser',
  '--minify',
  '--splitting',
  '--public-path=/',
  '--entry-naming=[dir]/[name].[ext]',
  '--chunk-naming=assets/[name]-[hash].[ext]',
  '--asset-naming=assets/[name]-[hash].[ext]',
  // Bun would inline all fonts into the stylesheet, and few pages need more than one.
  '--external=/assets/*',
]

function assetOf(path: string): Asset {
  return { type: types[extname(path)] ?? '', bytes: readFileSync(path).toString('base64') }
}

/** The fonts of the stylesheet, by the version of their package. */
function fonts() {
  const font = join(project, 'node_modules/@fontsource-variable/instrument-sans')
  const { version } = JSON.parse(readFileSync(join(font, 'package.json'), 'utf8'))
  return ['latin', 'latin-ext'].map((subset) => ({
    name: `instrument-sans-${version}-${subset}.woff2`,
    path: join(font, `files/instrument-sans-${subset}-wght-normal.woff2`),
  }))
}
