// Packages of services install their program where only root's PATH finds it.
export const folders = `${process.env['PATH'] ?? ''}:/usr/sbin`

/** Programs that some tests need: without one they are skipped, and `bun run test` ends with a line about it. */
export const tools = {
  caddy: find('caddy'),
  chromium: find('chromium', 'google-chrome'),
  curl: find('curl'),
  exiftool: find('exiftool'),
  gcc: find('gcc', 'cc'),
  nginx: find('nginx'),
  openssl: find('openssl'),
  promtool: find('promtool'),
  radosgw: findAll('ceph', 'ceph-mon', 'ceph-osd', 'radosgw-admin', 'radosgw'),
}

/** @returns the path of the first that exists */
function find(...names: string[]) {
  return names.map((name) => Bun.which(name, { PATH: folders }) ?? undefined).find(Boolean)
}

/** @returns the path of the last, if all exist */
function findAll(...names: string[]) {
  const found = names.map((name) => find(name))
  return found.includes(undefined) ? undefined : found.at(-1)
}
