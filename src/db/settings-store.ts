import { isDeepStrictEqual } from 'node:util'
import { eq } from 'drizzle-orm'
import type { Config } from '../config.ts'
import type { Log } from '../lib/log.ts'
import { parseJson } from '../lib/text.ts'
import {
  defaultSettings,
  isSettingName,
  isSettingValue,
  type SettingChanges,
  type SettingName,
  type SettingValues,
  settingNames,
} from '../settings.ts'
import type { AuditTrail, By } from './audit-trail.ts'
import type { Orm } from './open.ts'
import { settings } from './schema.ts'
import type { AfterCommit } from './writer.ts'

type Parts = { config: Config; orm: Orm; audit: AuditTrail; log: Log; afterCommit: AfterCommit }

export type Settings = ReturnType<typeof createSettings>
/** The settings, or how they would be after a change. */
export type ShownSettings = { get: <K extends SettingName>(name: K) => SettingValues[K] }

const longestInAudit = 500

/** Texts without surrounding space, objects without absent values. */
function normal(value: unknown): unknown {
  if (typeof value === 'string') return value.trim()
  return JSON.parse(JSON.stringify(value, (_, inner) => inner ?? undefined))
}

/** Without a row a setting has its default; an invalid row is logged and ignored. */
export function createSettings({ config, orm, audit, log, afterCommit }: Parts) {
  const defaults = defaultSettings(config)
  let values = load()

  function load(): SettingValues {
    const stored = orm.select().from(settings).all().flatMap(read)
    return { ...defaults, ...Object.fromEntries(stored) }
  }

  function read({ name, value }: typeof settings.$inferSelect): [SettingName, unknown][] {
    const parsed = parseJson(value)
    if (isSettingName(name) && isSettingValue(name, parsed)) return [[name, parsed]]
    log.warn('a stored setting is not valid and has no effect', { name })
    return []
  }

  function change(name: SettingName, from: unknown, to: unknown, by: By) {
    if (isDeepStrictEqual(from, to)) return
    const value = JSON.stringify(to)
    if (isDeepStrictEqual(to, defaults[name])) {
      orm.delete(settings).where(eq(settings.name, name)).run()
    } else {
      const change = { target: settings.name, set: { value } }
      orm.insert(settings).values({ name, value }).onConflictDoUpdate(change).run()
    }
    const short = (text: string) => text.slice(0, longestInAudit)
    const details = { from: short(JSON.stringify(from)), to: short(value) }
    const target = { type: 'setting', id: name } as const
    audit.record({ action: 'setting_changed', ...by, target, details })
  }

  return {
    get: <K extends SettingName>(name: K): SettingValues[K] => values[name],
    all: (): SettingValues => values,
    defaults: (): SettingValues => defaults,
    /** The settings as valid changes would make them. Null is the default. */
    changedBy(changes: SettingChanges): ShownSettings {
      const known = Object.entries(changes).filter(([name]) => isSettingName(name))
      const changed = known.map(([name, value]) => [name, value ?? defaults[name as SettingName]])
      const shown: SettingValues = { ...values, ...Object.fromEntries(changed) }
      return { get: (name) => shown[name] }
    },
    /** Replaces the named settings by valid values, inside a `write`. Null is the default. */
    change(changes: SettingChanges, by: By): void {
      const before = load()
      for (const name of settingNames) {
        const given = changes[name]
        if (given === undefined) continue
        change(name, before[name], given === null ? defaults[name] : normal(given), by)
      }
      afterCommit(() => {
        values = load()
      })
    },
  }
}
