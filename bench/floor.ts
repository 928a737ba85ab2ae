import { Database } from 'bun:sqlite'
import { fdatasync, openSync } from 'node:fs'
import { join } from 'node:path'
import type { ServerWebSocket } from 'bun'

/** The floor: what the same inserts, batches and syncs cost on this machine with nothing around them. No framework,
 *  no accounts, no limits, no validation: bare Bun.serve and bun:sqlite. Users are numbers, 2n talks with 2n + 1. */

const [directory = '.', portText = '0'] = process.argv.slice(2)
const path = join(directory, 'floor.db')
const sqlite = new Database(path, { create: true })
sqlite.run('PRAGMA journal_mode = WAL')
sqlite.run('PRAGMA synchronous = NORMAL')
sqlite.run(`CREATE TABLE conversations (id TEXT PRIMARY KEY, last_seq INTEGER NOT NULL DEFAULT 0)`)
sqlite.run(`CREATE TABLE participants (user_id TEXT, conversation_id TEXT, unread_count INTEGER NOT NULL DEFAULT 0,
  last_activity_at INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (user_id, conversation_id)) WITHOUT ROWID`)
sqlite.run('CREATE INDEX inbox ON participants (user_id, last_activity_at, conversation_id)')
sqlite.run(`CREATE TABLE messages (conversation_id TEXT, seq INTEGER, id TEXT, sender_id TEXT, type TEXT, body TEXT,
  created_at INTEGER, PRIMARY KEY (conversation_id, seq)) WITHOUT ROWID`)

const begin = sqlite.prepare('BEGIN IMMEDIATE')
const commit = sqlite.prepare('COMMIT')
const next = sqlite.prepare<{ last_seq: number }, [string]>(
  'UPDATE conversations SET last_seq = last_seq + 1 WHERE id = ? RETURNING last_seq',
)
const insert = sqlite.prepare(
  `INSERT INTO messages (conversation_id, seq, id, sender_id, type, body, created_at) VALUES (?, ?, ?, ?, 'text', ?, ?)`,
)
const touch = sqlite.prepare(
  `UPDATE participants SET last_activity_at = ?, unread_count = unread_count + (user_id <> ?)
   WHERE user_id IN (?, ?) AND conversation_id = ?`,
)
for (let user = 0; user < 256; user += 2) {
  const id = conversationOf(user)
  sqlite.run('INSERT INTO conversations (id) VALUES (?)', [id])
  for (const own of [user, user + 1]) {
    sqlite.run('INSERT INTO participants (user_id, conversation_id) VALUES (?, ?)', [
      String(own),
      id,
    ])
  }
}
const wal = openSync(`${path}-wal`, 'r+')

function conversationOf(user: number) {
  return `C${String(user).padStart(25, '0')}`
}

type Data = { user: number }
const sockets = new Map<number, ServerWebSocket<Data>>()
type Task = { user: number; body: string; done: (frame: string) => void; frame: string }
let queued: Task[] = []
let unsynced: Task[] = []
let syncing = false
let scheduled = false
let counter = 0

function send(user: number, body: string, done: (frame: string) => void) {
  queued.push({ user, body, done, frame: '' })
  if (scheduled) return
  scheduled = true
  setImmediate(flush)
}

function flush() {
  scheduled = false
  const batch = queued
  queued = []
  begin.run()
  for (const task of batch) task.frame = store(task)
  commit.run()
  unsynced.push(...batch)
  if (!syncing) sync()
}

function store({ user, body }: Task): string {
  const low = user - (user % 2)
  const conversation = conversationOf(low)
  const seq = next.get(conversation)?.last_seq ?? 0
  const now = Date.now()
  const id = String(++counter).padStart(26, '0')
  insert.run(conversation, seq, id, String(user), body, now)
  touch.run(now, String(user), String(low), String(low + 1), conversation)
  const message = {
    id,
    conversation_id: conversation,
    sender_id: String(user),
    body,
    created_at: now,
  }
  return JSON.stringify({ type: 'new_message', message })
}

function sync() {
  syncing = true
  const covered = unsynced
  unsynced = []
  fdatasync(wal, () => {
    for (const { user, frame, done } of covered) {
      const low = user - (user % 2)
      sockets.get(low)?.send(frame)
      sockets.get(low + 1)?.send(frame)
      done(frame)
    }
    syncing = false
    if (unsynced.length > 0) sync()
  })
}

const server = Bun.serve<Data>({
  port: Number(portText),
  async fetch(request, self) {
    const url = new URL(request.url)
    const user = Number(url.searchParams.get('user'))
    if (url.pathname === '/ws') {
      return self.upgrade(request, { data: { user } })
        ? undefined
        : new Response(null, { status: 400 })
    }
    const { body } = (await request.json()) as { body: string }
    return new Promise((resolve) => {
      send(user, body, (frame) => resolve(new Response(frame, { status: 201 })))
    })
  },
  websocket: {
    open: (socket) => void sockets.set(socket.data.user, socket),
    message: (socket, text) => send(socket.data.user, JSON.parse(String(text)).body, () => {}),
    close: (socket) => void sockets.delete(socket.data.user),
  },
})
console.log(JSON.stringify({ port: server.port }))
