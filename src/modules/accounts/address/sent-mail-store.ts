import { and, asc, eq, gt, lte } from 'drizzle-orm'
import type { Core } from '../../../core.ts'
import type { AddressHash } from '../../../db/keyed-hash.ts'
import { sentMails } from '../../../db/schema.ts'
import { day, hour, minute } from '../../../lib/clock.ts'
import { throttled } from '../../../lib/errors.ts'
import type { CountedMail } from '../../../lib/vocabulary.ts'
import { lifetimeMilliseconds } from './one-time-token-store.ts'

/** `pauseAfter`: milliseconds until the next mail, by the number of mails in the last day. */
type Rule = { perDay: number; pauseAfter: (times: number) => number }

const rules: Record<CountedMail, Rule> = {
  verify_email: { perDay: 5, pauseAfter: () => minute },
  // The pause grows, but never beyond the lifetime of the last link.
  reset_password: {
    perDay: Number.POSITIVE_INFINITY,
    pauseAfter: (times) => Math.min(lifetimeMilliseconds.reset_password, minute * 4 ** (times - 1)),
  },
  change_email: { perDay: 5, pauseAfter: () => minute },
  confirm: { perDay: 5, pauseAfter: () => minute },
  password_changed: { perDay: Number.POSITIVE_INFINITY, pauseAfter: () => hour },
}

/** Counts the mails that anybody can trigger, by recipient. */
export function createSentMails({ orm, clock }: Core, hashAddress: AddressHash) {
  /** @returns 0, or over the limit the milliseconds until the next mail may be sent */
  function wait(kind: CountedMail, address: string): number {
    const { perDay, pauseAfter } = rules[kind]
    const now = clock.now()
    const addressHash = hashAddress(address)
    const { addressHash: hash, at } = sentMails
    // Later times are from before the clock was set back.
    const isRecent = and(gt(at, now - day), lte(at, now))
    const sent = orm
      .select({ at })
      .from(sentMails)
      .where(and(eq(hash, addressHash), eq(sentMails.kind, kind), isRecent))
      .orderBy(asc(at))
      .all()
    const [first] = sent
    const last = sent.at(-1)
    if (first && sent.length >= perDay) return first.at + day - now
    const pause = last ? last.at + pauseAfter(sent.length) - now : 0
    if (pause > 0) return pause
    orm.insert(sentMails).values({ addressHash, kind, at: now }).run()
    return 0
  }

  return {
    take: (kind: CountedMail, address: string): boolean => wait(kind, address) === 0,
    mustTake(kind: CountedMail, address: string): void {
      const milliseconds = wait(kind, address)
      if (milliseconds > 0) throw throttled('mail_throttled', milliseconds)
    },
  }
}
