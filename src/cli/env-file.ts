import { readFileSync } from 'node:fs'
import { isatty } from 'node:tty'
import { type Environment, entries } from '../config.ts'
import { StartError } from '../lib/errors.ts'
import { program, type Terminal } from './terminal.ts'

/** Replaces the environment by that of a file for systemd (EnvironmentFile), so that a command sees what the service does.
 *  Entries of the shell that differ are named.
 *  @throws StartError for a file that cannot be read, or a line that is no assignment */
export function withEnvironmentFile(terminal: Terminal, path: string): Terminal {
  const { environment: shell, err } = terminal
  const file = parse(readText(path), path)
  for (const name of Object.keys(entries)) {
    if (shell[name] === undefined || shell[name] === file[name]) continue
    const other = file[name] === undefined ? 'is not in' : 'differs from'
    err(`hostline: ${name} of the shell ${other} ${path}, which counts`)
  }
  const others = Object.entries(shell).filter(([name]) => !Object.hasOwn(entries, name))
  return { ...terminal, environment: { ...Object.fromEntries(others), ...file } }
}

/** When the file names another authority than the shell: the runtime reads that when the process begins.
 *  @returns the exit code; undefined when it can run here */
export async function runWithAuthority(argv: string[], { environment }: Terminal, shell: Terminal) {
  const authority = environment['NODE_EXTRA_CA_CERTS']
  if (authority === shell.environment['NODE_EXTRA_CA_CERTS']) return undefined
  const io = { stdin: 'inherit', stdout: 'inherit', stderr: 'inherit' } as const
  const child = Bun.spawn([...program(), ...argv], { ...io, env: environment })
  for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal))
  // A terminal sends Ctrl-C to both. A second one would end a server without finishing its requests.
  const isAtTerminal = [0, 1, 2].some((descriptor) => isatty(descriptor))
  process.on('SIGINT', () => isAtTerminal || child.kill('SIGINT'))
  return await child.exited
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new StartError(`--env-file: ${(cause as Error).message}`, { exitCode: 2, cause })
  }
}

// https://www.freedesktop.org/software/systemd/man/systemd.exec.html, EnvironmentFile
const line =
  /^\s*(?:[#;].*|([A-Za-z_]\w*)[^\S\n]*=[^\S\n]*('[^']*'\s*?|"(?:[^"\\]|\\[\s\S])*"\s*?|(?:[^\\\n]|\\[\s\S])*)|(.+))$/gm

function parse(text: string, path: string): Environment {
  const environment: Environment = {}
  for (const [, name, value = '', other] of text.matchAll(line)) {
    if (other !== undefined)
      throw new StartError(`${path}: "${other.split(/[\s=]/, 1)[0]}" is no assignment`)
    if (name !== undefined) environment[name] = unquoted(value.trim())
  }
  return environment
}

function unquoted(value: string): string {
  const [, single] = /^'([^']*)'$/.exec(value) ?? []
  if (single !== undefined) return single
  const joined = value.replaceAll(/\\\r?\n/g, '')
  const [, double] = /^"((?:[^"\\]|\\.)*)"$/s.exec(joined) ?? []
  if (double !== undefined) return double.replaceAll(/\\(["\\$`])/g, '$1')
  return joined.replaceAll(/\\(.)/g, '$1')
}
