import { Database } from 'bun:sqlite'
import { fdatasync, openSync } from 'node:fs'
import { join } from 'node:path'
import type { ServerWebSocket } from 'bun'

/** The floor: the cost of the same inserts, batches, syncs and pages on this machine with bare Bun.serve and
 *  bun:sqlite, without framework, accounts, limits or validation. Users are numbers; 2n talks with 2n + 1. */

const path = join(process.env['DATA_DIR'] ?? '.', 'floor.db')
const sqlite = new Database(path, { create: true })
sqlite.run('PRAGMA journal_mode = WAL')
sqlite.run('PRAGMA synchronous = NORMAL')
sqlite.run(`CREATE TABLE conversations (id TEXT PRIMARY KEY, last_seq INTEGER NOT NULL DEFAULT 0)`)
sqlite.run(`CREATE TABLE participants (user_id TEXT, conversation_id TEXT, unread_count INTEGER NOT NULL DEFAULT 0,
  last_activity_at INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (user_id, conversation_id)) WITHOUT ROWID`)
sqlite.run('CREATE INDEX inbox ON participants (user_id, last_activity_at, conversation_id)')
sqlite.run(`CREATE TABLE messages (conversation_id TEXT, seq INTEGER, id TEXT, sender_id TEXT, type TEXT, body TEXT,
  file_url TEXT, file_name TEXT, file_size INTEGER, file_type TEXT, created_at INTEGER,
  PRIMARY KEY (conversation_id, seq)) WITHOUT ROWID`)

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
const lastSeq = sqlite.prepare<{ last_seq: number }, [string]>(
  'SELECT last_seq FROM conversations WHERE id = ?',
)
const list = sqlite.prepare<{ created_at: number }, [string, number, number]>(
  `SELECT id, conversation_id, sender_id, body, type, file_url, file_name, file_size, file_type, created_at
   FROM messages WHERE conversation_id = ? AND seq > ? AND seq <= ? ORDER BY seq DESC`,
)
for (let user = 0; user < 256; user += 2) {
  const id = conversationOf(user)
  sqlite.run('INSERT INTO conversations (id) VALUES (?)', [id])
  for (const own of [user, user + 1]) {
    sqlite.run('INSERT INTO participants (user_id, conversation_id) VALUES (?, ?)', [
      userId(own),
      id,
    ])
  }
}
const wal = openSync(`${path}-wal`, 'r+')

function conversationOf(user: number) {
  return `C${String(user - (user % 2)).padStart(25, '0')}`
}

function userId(user: number) {
  return String(user).padStart(26, '0')
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
  const conversation = conversationOf(user)
  const seq = next.get(conversation)?.last_seq ?? 0
  const now = Date.now()
  const id = String(++counter).padStart(26, '0')
  const sender = userId(user)
  insert.run(conversation, seq, id, sender, body, now)
  touch.run(now, sender, sender, userId(user ^ 1), conversation)
  const message = {
    id,
    conversation_id: conversation,
    sender_id: sender,
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
      sockets.get(user)?.send(frame)
      sockets.get(user ^ 1)?.send(frame)
      done(frame)
    }
    syncing = false
    if (unsynced.length > 0) sync()
  })
}

/** The newest page of messages, in the service's format. */
function page(user: number, perPage: number) {
  const conversation = conversationOf(user)
  const total = lastSeq.get(conversation)?.last_seq ?? 0
  const data = list.all(conversation, total - perPage, total).map((row) => ({
    ...row,
    created_at: new Date(row.created_at).toISOString(),
  }))
  const pagination = { page: 1, per_page: perPage, total, total_pages: Math.ceil(total / perPage) }
  return { success: true, data, pagination }
}

const server = Bun.serve<Data>({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request, self) {
    const url = new URL(request.url)
    const [, resource, id] = url.pathname.split('/')
    const user = Number(id)
    if (resource === 'ws') {
      return self.upgrade(request, { data: { user } })
        ? undefined
        : new Response(null, { status: 400 })
    }
    if (request.method === 'GET') {
      return Response.json(page(user, Number(url.searchParams.get('per_page'))))
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
console.log(`listens on 127.0.0.1:${server.port}`)
