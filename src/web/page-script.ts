/** For `with { type: 'macro' }`: runs when the sources are read or built, so that the executable carries the result.
 *  @returns the script of a page and everything that it imports, as one text for browsers */
export function pageScript(file: string): string {
  const entry = `${import.meta.dir}/${file}`
  // A process of its own: the bundler cannot be asked from within itself.
  const build = [process.execPath, 'build', entry, '--target=browser', '--format=esm', '--minify']
  const { exitCode, stdout, stderr } = Bun.spawnSync(build)
  if (exitCode !== 0) throw new Error(`${file} cannot be bundled: ${stderr}`)
  return stdout.toString()
}
