import type { Delivery } from './delivery.ts'
import { SessionEndedError } from './errors.ts'
import type { Timers } from './platform.ts'
import { readJson, removeKey, type Storage, writeJson } from './storage.ts'
import { type Deferred, deferred, sleep } from './waiting.ts'

/** A conversation sends at most one mark in this time. */
const pauseMilliseconds = 1_000
/** All of them together do. A mark is two frames, of which the service takes ten a second. */
const sharedPauseMilliseconds = 300

type Mark = { upTo: string | undefined; done: Deferred<void> }
type Owner = {
  key: string
  controller: AbortController
  waiting: Map<string, Mark>
  /** The conversations that send a mark, or have just sent one. */
  busy: Set<string>
  /** Ends when the next mark may be sent. */
  turn?: Promise<void>
}
type ReadMarksOptions = {
  timers: Timers
  storage: Storage
  persist: Delivery['persist']
  /** Over the open socket; false when the service has not received it. */
  sendFrame: (conversationId: string, upTo: string | undefined) => Promise<boolean>
  newestMessageId: () => string | undefined
  put: (id: string, upTo: string | undefined, options: { signal: AbortSignal }) => Promise<unknown>
  onMarked: (conversationId: string, upTo: string | undefined) => void
}

/** Read marks that the service has not received yet, one per conversation: a later one replaces it. They wait for the
 *  network and are kept in the storage. */
export function createReadMarks(options: ReadMarksOptions) {
  const { timers, storage, persist, sendFrame, newestMessageId, put, onMarked } = options

  let current: Owner | undefined
  let ending: Error = new SessionEndedError()

  // Other tabs of the user change the same marks.
  const storedMarks = (key: string) => (readJson(storage, key) ?? {}) as Record<string, string>

  function remember(key: string, id: string, upTo: string) {
    const { [id]: before = upTo, ...others } = storedMarks(key)
    writeJson(storage, key, { ...others, [id]: furthest(before, upTo) })
  }

  /** Forgets a mark that the service has; one of another tab may be further. */
  function forget(key: string, id: string, upTo: string | undefined) {
    const { [id]: stored, ...others } = storedMarks(key)
    if (upTo && stored && stored > upTo) return
    if (Object.keys(others).length === 0) removeKey(storage, key)
    else writeJson(storage, key, others)
  }

  function add(owner: Owner, id: string, upTo: string | undefined): Promise<void> {
    const before = owner.waiting.get(id)
    const mark = before ?? { upTo, done: deferred() }
    if (before) before.upTo = furthest(before.upTo, upTo)
    owner.waiting.set(id, mark)
    // After a reload, `all` would cover messages that nobody has seen.
    if (upTo) remember(owner.key, id, upTo)
    void send(owner, id)
    mark.done.promise.catch(() => {}) // errors go to callers that wait
    return mark.done.promise
  }

  /** Waits until no other mark is being sent.
   *  @returns the function that lets the next one be sent */
  async function takeTurn(owner: Owner): Promise<() => void> {
    const before = owner.turn
    const own = deferred<void>()
    owner.turn = own.promise
    await before
    return own.resolve
  }

  async function send(owner: Owner, id: string) {
    const { key, waiting, busy } = owner
    const { signal } = owner.controller
    if (busy.has(id)) return
    busy.add(id)
    while (waiting.has(id)) {
      const endTurn = await takeTurn(owner)
      const mark = waiting.get(id)
      if (!mark) break // logged out meanwhile
      const { upTo, done } = mark
      waiting.delete(id)
      const covered = upTo ?? newestMessageId()
      const work = async () => (await sendFrame(id, upTo)) || put(id, upTo, { signal })
      await persist(work, signal).then(
        () => {
          onMarked(id, covered)
          done.resolve()
        },
        (error) => done.reject(signal.aborted ? ending : error),
      )
      if (!signal.aborted && !waiting.has(id)) forget(key, id, upTo)
      void sleep(timers, sharedPauseMilliseconds, signal).then(endTurn, endTurn)
      await sleep(timers, pauseMilliseconds, signal).catch(() => {})
    }
    busy.delete(id)
  }

  return {
    /** Starts for a user, and first sends what was left before a reload. */
    begin(userId: string) {
      if (current) return
      const key = `reads.${userId}`
      current = {
        key,
        controller: new AbortController(),
        waiting: new Map(),
        busy: new Set(),
      }
      for (const [id, upTo] of Object.entries(storedMarks(key))) {
        void add(current, id, upTo)
      }
    },

    /** @throws ApiError when the service refuses the mark · SessionEndedError */
    mark: (id: string, upTo?: string): Promise<void> =>
      current ? add(current, id, upTo) : Promise.reject(ending),

    /** Stops for the user. Marks are kept in the storage for the next login, or dropped. */
    end(leftovers: 'keep' | 'drop', reason: Error) {
      if (!current) return
      const { key, controller, waiting } = current
      ending = reason
      current = undefined
      controller.abort()
      for (const { done } of waiting.values()) done.reject(reason)
      waiting.clear()
      if (leftovers === 'drop') removeKey(storage, key)
    },
  }
}

/** Undefined marks the whole conversation. */
function furthest(one: string | undefined, other: string | undefined) {
  return one && other && (one > other ? one : other)
}
