import { ArrowLeft, Check, ChevronRight, PanelRight, RotateCcw, X } from 'lucide-preact'
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { DeskTicket, DeskTicketListItem } from '../../../../client/src/client.ts'
import { Avatar } from '../../kit/avatar.tsx'
import { Button, IconButton } from '../../kit/button.tsx'
import { Copyable } from '../../kit/copy.tsx'
import { duration } from '../../kit/format.ts'
import { Facts, Stale } from '../../kit/list.tsx'
import { navigate, path, useTitle, withQuery } from '../../kit/router.ts'
import { Select } from '../../kit/select.tsx'
import { useShortcut } from '../../kit/shortcuts.tsx'
import { Failure } from '../../kit/states.tsx'
import { fill, language, texts } from '../../kit/texts.tsx'
import { Time } from '../../kit/time.tsx'
import { toastError } from '../../kit/toast.tsx'
import { useQuery } from '../data.ts'
import { loadedId } from '../panes.tsx'
import { client, status } from '../session.ts'
import { Composer } from './composer.tsx'
import type { Kind } from './draft.ts'
import { PriorityMark, StatusMark } from './list-pane.tsx'
import { ChangeShortcuts } from './selection-bar.tsx'
import { Thread, ThreadSkeleton } from './thread.tsx'
import {
  assignable,
  type Change,
  changeTicket,
  changeWithUndo,
  nameOfAdmin,
  prefetchTicket,
  useTicket,
} from './ticket.ts'
import {
  categories,
  categoryNames,
  priorities,
  priorityNames,
  type Status,
  statuses,
  statusNames,
} from './views.ts'

const words = texts.console.desk
const { facts, keys } = words

type TicketPaneProps = {
  id: string
  row: DeskTicketListItem | undefined
  nextId: string | undefined
  /** While tickets are selected, the shortcuts change those. */
  hasSelection: boolean
}

export function TicketPane({ id, row, nextId, hasSelection }: TicketPaneProps) {
  const ticket = useTicket(id)
  const item = ticket.data ?? row
  const [showsDetails, setShowsDetails] = useState(false)
  const toggle = useRef<HTMLButtonElement>(null)
  const hideDetails = () => {
    setShowsDetails(false)
    toggle.current?.focus()
  }
  const isLoaded = ticket.data !== undefined
  useEffect(() => {
    if (isLoaded && nextId !== undefined) prefetchTicket(nextId)
  }, [isLoaded, nextId])
  const advance = () => {
    // The admin may have gone elsewhere before the change was stored.
    if (nextId === undefined || path.value !== `/console/desk/${id}`) return
    navigate(withQuery({}, `/console/desk/${nextId}`), 'replace')
  }
  async function change(target: Change) {
    const isDone = item && (await changeWithUndo(item, target))
    if (isDone && target.status === 'resolved') advance()
  }
  useShortcut('i', keys.details, () => setShowsDetails(!showsDetails))
  useShortcut('Escape', words.back, () => {
    if (showsDetails) hideDetails()
    else backToList()
  })
  useShortcut('u', words.back, backToList)
  // Set before the ticket has loaded, too: the next keys are text and must not run other shortcuts.
  const [requested, setRequested] = useState<{ kind: Kind }>()
  useShortcut('r', words.composer.reply, () => setRequested({ kind: 'reply' }))
  useShortcut('n', keys.note, () => setRequested({ kind: 'note' }))
  useTitle(item?.subject)
  if (ticket.error !== undefined && !ticket.data) {
    return (
      <section class="thread-pane alone" aria-label={words.ticket}>
        <header class="ticket-header row">
          <BackButton />
        </header>
        <Failure error={ticket.error} retry={ticket.reload} />
      </section>
    )
  }
  return (
    <>
      {!hasSelection && ticket.data && <ChangeShortcuts apply={change} />}
      <section class="thread-pane" aria-label={words.ticket}>
        <TicketHeader id={id} ticket={item}>
          {item && <SettleButton status={item.status} change={change} />}
          <IconButton
            of={toggle}
            icon={PanelRight}
            class="details-toggle"
            label={words.details}
            keys="i"
            expanded={showsDetails}
            onClick={() => setShowsDetails(!showsDetails)}
          />
        </TicketHeader>
        <Stale from={ticket} />
        {ticket.data ? (
          <Conversation
            ticket={ticket}
            detail={ticket.data}
            requested={requested}
            onDone={advance}
          />
        ) : (
          <ThreadSkeleton />
        )}
      </section>
      {item && <Details ticket={item} isShown={showsDetails} hide={hideDetails} change={change} />}
    </>
  )
}

type ConversationProps = {
  ticket: ReturnType<typeof useTicket>
  detail: DeskTicket
  requested: { kind: Kind } | undefined
  onDone: () => void
}

function Conversation({ ticket, detail, requested, onDone }: ConversationProps) {
  const [seenId, setSeenId] = useState<string>()
  return (
    <>
      <Thread ticket={detail} loadOlder={ticket.loadOlder} onSeen={setSeenId} />
      <Composer ticket={detail} seenId={seenId} requested={requested} onDone={onDone} />
    </>
  )
}

type HeaderProps = {
  id: string
  ticket: DeskTicketListItem | undefined
  children: ComponentChildren
}

// An opened ticket takes the focus, unless the page was loaded with it.
let isPageNew = true

function TicketHeader({ id, ticket, children }: HeaderProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    // On a narrow screen the row that was opened is hidden by now, and has lost the focus.
    if (!isPageNew || id !== loadedId) heading.current?.focus({ preventScroll: true })
    isPageNew = false
  }, [id])
  return (
    <header class="ticket-header row">
      <BackButton />
      <Avatar name={ticket?.user.display_name ?? ''} picture={ticket?.user.avatar_url} />
      <div class="grow">
        <h2 ref={heading} class="clamped" tabIndex={-1} dir="auto" title={ticket?.subject}>
          {ticket?.subject ?? <span class="skeleton" style={{ width: '60%' }} />}
        </h2>
        <p class="row small soft">
          <bdi class="truncate">{ticket?.user.display_name}</bdi>
          {ticket && <StatusMark status={ticket.status} />}
          {ticket && <PriorityMark priority={ticket.priority} />}
          <Viewers id={id} />
        </p>
      </div>
      {children}
    </header>
  )
}

/** The other admins who have the ticket open. */
function Viewers({ id }: { id: string }) {
  const ids = useViewers(id)
  const names = new Intl.ListFormat(language.value).format(ids.map(nameOfAdmin))
  return (
    <span class="viewers row" role="status">
      {ids.slice(0, 3).map((viewer) => (
        <Avatar key={viewer} name={nameOfAdmin(viewer)} />
      ))}
      {ids.length > 0 && (
        <span class="truncate" title={names}>
          {fill(words.alsoHere, { names })}
        </span>
      )}
    </span>
  )
}

/** Resolves or reopens the ticket. */
function SettleButton(props: { status: Status; change: (change: Change) => void }) {
  const isSettled = props.status === 'resolved' || props.status === 'closed'
  return (
    <Button
      class="settle"
      icon={isSettled ? RotateCcw : Check}
      title={isSettled ? words.reopen : words.resolveHint}
      onClick={() => props.change({ status: isSettled ? 'open' : 'resolved' })}
    >
      <span class="name">{isSettled ? words.reopen : words.resolve}</span>
    </Button>
  )
}

function BackButton() {
  return (
    <IconButton icon={ArrowLeft} class="back" label={words.back} keys="u" onClick={backToList} />
  )
}

const backToList = () => navigate(withQuery({}, '/console/desk'))

type DetailsProps = {
  ticket: DeskTicketListItem
  /** On a narrow screen the details are an overlay. */
  isShown: boolean
  hide: () => void
  change: ChoicesProps['settle']
}

function Details({ ticket, isShown, hide, change }: DetailsProps) {
  const hideButton = useRef<HTMLButtonElement>(null)
  useLayoutEffect(() => {
    if (isShown) hideButton.current?.focus()
  }, [isShown])
  return (
    <aside class={`details-pane stack${isShown ? ' shown' : ''}`} aria-label={words.details}>
      <IconButton of={hideButton} icon={X} class="hide" label={words.hideDetails} onClick={hide} />
      <Owner ticket={ticket} />
      <Choices ticket={ticket} settle={change} />
      <TicketFacts ticket={ticket} />
      <OtherTickets ticket={ticket} />
    </aside>
  )
}

function Owner({ ticket: { user: owner } }: { ticket: DeskTicketListItem }) {
  return (
    <section class="stack tight" aria-label={words.openedBy}>
      <h3 dir="auto">{owner.display_name}</h3>
      <p class="small soft address">{owner.email ?? words.removedAccount}</p>
      {owner.email !== undefined && (
        <a class="small row" href={`/console/people/${owner.id}`}>
          {words.showPerson}
          <ChevronRight />
        </a>
      )}
    </section>
  )
}

type ChoicesProps = { ticket: DeskTicketListItem; settle: (target: Change) => Promise<void> }

function Choices({ ticket, settle }: ChoicesProps) {
  const { id, status, priority, category, assignee } = ticket
  const change = (target: Change) => void changeTicket(id, target).catch(toastError)
  return (
    <section class="stack tight" aria-label={texts.fields.state}>
      <Select
        isField
        label={words.status}
        value={status}
        options={statuses.map((value) => [value, statusNames[value]])}
        choose={(value) => void settle({ status: value })}
      />
      <Select
        isField
        label={texts.tickets.priority}
        value={priority}
        options={priorities.map((value) => [value, priorityNames[value]])}
        choose={(value) => change({ priority: value })}
      />
      <Select
        isField
        label={texts.tickets.category}
        value={category}
        options={categories.map((value) => [value, categoryNames[value]])}
        choose={(value) => change({ category: value })}
      />
      <Select
        isField
        label={words.assignee}
        value={assignee?.id ?? ''}
        options={[['', words.nobody], ...assignable(assignee)]}
        choose={(value) => change({ assignee_id: value === '' ? null : value })}
      />
    </section>
  )
}

function TicketFacts({ ticket }: { ticket: DeskTicketListItem }) {
  const { id, created_at, updated_at, waiting_since, first_response_at, message_count } = ticket
  return (
    <Facts
      of={[
        [facts.opened, <Time at={created_at} />],
        [facts.change, <Time at={updated_at} />],
        [facts.waiting, waiting_since ? <Time at={waiting_since} /> : facts.notWaiting],
        [
          facts.firstResponse,
          first_response_at ? after(created_at, first_response_at) : facts.noResponse,
        ],
        [texts.fields.messages, message_count],
        [texts.fields.id, <Copyable text={id} shown={`#${id.slice(-6)}`} name={facts.theId} />],
      ]}
    />
  )
}

const after = (from: string, to: string) =>
  fill(facts.after, {
    duration: duration(Math.max(1, (Date.parse(to) - Date.parse(from)) / 1_000)),
  })

const shownTickets = 5
/** Tickets that are only passed need no more than one request, and are not announced: a held key would exceed the
 *  limit of frames. */
const dwellMilliseconds = 1_000

/** Newest tickets of the owner. */
function OtherTickets({ ticket: { id, user: owner } }: { ticket: DeskTicketListItem }) {
  const [isStaying, setStaying] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setStaying(true), dwellMilliseconds)
    return () => clearTimeout(timer)
  }, [])
  const query = { user_id: owner.id, per_page: shownTickets + 1 }
  const { data } = useQuery('GET /v1/admin/support/tickets', isStaying ? { query } : undefined)
  const others = data?.data.filter((other) => other.id !== id).slice(0, shownTickets) ?? []
  if (others.length === 0) return null
  return (
    <section class="stack tight" aria-label={words.others}>
      <h3>{words.others}</h3>
      <ul class="stack tight">
        {others.map((other) => (
          <li key={other.id}>
            <a class="other quiet small row between" href={`/console/desk/${other.id}?view=all`}>
              <span class="truncate" dir="auto">
                {other.subject}
              </span>
              <StatusMark status={other.status} />
            </a>
          </li>
        ))}
      </ul>
    </section>
  )
}

const announceMilliseconds = 20_000
const shownMilliseconds = 30_000

/** The ids of the other admins who have the ticket open. Tells them that this one has, while the page is visible. */
function useViewers(ticketId: string): string[] {
  const [ids, setIds] = useState<string[]>([])
  const isOpen = status.value === 'open'
  useEffect(() => {
    if (!isOpen) return
    const leaving = new Map<string, ReturnType<typeof setTimeout>>()
    const announce = () => {
      if (!document.hidden) client.sendFrame({ type: 'viewing', ticket_id: ticketId })
    }
    function leave(id: string) {
      leaving.delete(id)
      setIds([...leaving.keys()])
    }
    const endListening = client.on('ticket_viewed', ({ ticket_id, user_id }) => {
      if (ticket_id !== ticketId) return
      const isNew = !leaving.has(user_id)
      clearTimeout(leaving.get(user_id))
      leaving.set(user_id, setTimeout(leave, shownMilliseconds, user_id))
      if (!isNew) return
      setIds([...leaving.keys()])
      // The newcomer need not wait for the next announcement.
      announce()
    })
    const dwell = setTimeout(announce, dwellMilliseconds)
    const repeat = setInterval(announce, announceMilliseconds)
    document.addEventListener('visibilitychange', announce)
    return () => {
      endListening()
      clearTimeout(dwell)
      clearInterval(repeat)
      document.removeEventListener('visibilitychange', announce)
      for (const timer of leaving.values()) clearTimeout(timer)
      setIds([])
    }
  }, [ticketId, isOpen])
  return ids
}
