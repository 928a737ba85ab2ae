import { visibleControls } from './text.ts'

export const logLevels = ['debug', 'info', 'warn', 'error'] as const
type LogLevel = (typeof logLevels)[number]
type LogFields = Record<string, unknown>

export type Log = Record<LogLevel, (message: string, fields?: LogFields) => void>

type LogOptions = {
  level: LogLevel
  format: 'pretty' | 'json'
  now: () => number
  write: (line: string) => void
}

/** JSON for machines, or text for a person at a terminal. An Error in `fields` keeps its stack. */
export function createLog({ level, format, now, write }: LogOptions): Log {
  const line = format === 'json' ? jsonLine : prettyLine
  const at = (own: LogLevel) =>
    logLevels.indexOf(own) < logLevels.indexOf(level)
      ? () => {}
      : (message: string, fields: LogFields = {}) =>
          write(visibleControls(line(new Date(now()).toISOString(), own, message, fields)))
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

function jsonLine(time: string, level: LogLevel, message: string, fields: LogFields) {
  return `${JSON.stringify({ time, level, message, ...fields }, plainError)}\n`
}

function prettyLine(time: string, level: LogLevel, message: string, fields: LogFields) {
  const known = Object.entries(fields).filter(([, value]) => value !== undefined)
  const text = known.map(
    ([name, value]) => ` ${name}=${value instanceof Error ? value.stack : JSON.stringify(value)}`,
  )
  return `${time.slice(11, 23)} ${level.toUpperCase().padEnd(5)} ${message}${text.join('')}\n`
}

function plainError(_key: string, value: unknown) {
  if (!(value instanceof Error)) return value
  return { name: value.name, message: value.message, stack: value.stack, cause: value.cause }
}
