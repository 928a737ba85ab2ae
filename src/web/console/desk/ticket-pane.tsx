import { ArrowLeft, Check, PanelRight, RotateCcw } from 'lucide-preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { DeskTicketListItem } from '../../../../client/src/client.ts'
import { navigate, withQuery } from '../../ui/router.ts'
import { useShortcut } from '../../ui/shortcuts.tsx'
import { Failure } from '../../ui/states.tsx'
import { toast } from '../../ui/toast.tsx'
import { useTitle } from '../title.ts'
import type { Change } from './change.ts'
import { ChangeShortcuts } from './change-shortcuts.tsx'
import { Composer } from './composer.tsx'
import { Details } from './details.tsx'
import type { Kind } from './draft.ts'
import { PriorityMark, StatusMark } from './marks.tsx'
import { Thread, ThreadSkeleton } from './thread.tsx'
import { type OpenTicket, useTicket } from './use-ticket.ts'
import { type Status, statusNames } from './words.ts'

type TicketPaneProps = {
  id: string
  row: DeskTicketListItem | undefined
  /** While tickets are selected, the shortcuts change those. */
  hasSelection: boolean
  onChanged: (ticket: DeskTicketListItem) => void
}

export function TicketPane({ id, row, hasSelection, onChanged }: TicketPaneProps) {
  const ticket = useTicket(id, row, onChanged)
  const [showsDetails, setShowsDetails] = useState(false)
  const toggle = useRef<HTMLButtonElement>(null)
  const hideDetails = () => {
    setShowsDetails(false)
    toggle.current?.focus()
  }
  const change = (target: Change) => changeWithUndo(ticket, target)
  useShortcut('i', 'Show or hide the details', () => setShowsDetails(!showsDetails))
  useShortcut('Escape', 'Back to the list', () => {
    if (showsDetails) hideDetails()
    else backToList(id)
  })
  useShortcut('u', 'Back to the list', () => backToList(id))
  // Set before the ticket has loaded, too: the next keys are text and must not run other shortcuts.
  const [requested, setRequested] = useState<{ kind: Kind }>()
  useShortcut('r', 'Reply', () => setRequested({ kind: 'reply' }))
  useShortcut('n', 'Write a note', () => setRequested({ kind: 'note' }))
  useTitle(ticket.item?.subject)
  if (ticket.error !== undefined) {
    return (
      <section class="thread-pane alone" aria-label="Ticket">
        <header class="ticket-header">
          <BackButton id={id} />
        </header>
        <Failure error={ticket.error} retry={ticket.refresh} />
      </section>
    )
  }
  return (
    <>
      {!hasSelection && ticket.detail && <ChangeShortcuts apply={change} />}
      <section class="thread-pane" aria-label="Ticket">
        <TicketHeader id={id} ticket={ticket.item}>
          {ticket.item && <SettleButton status={ticket.item.status} change={change} />}
          <button
            type="button"
            ref={toggle}
            class="button ghost icon details-toggle"
            aria-label="Details"
            title="Details (i)"
            aria-expanded={showsDetails}
            onClick={() => setShowsDetails(!showsDetails)}
          >
            <PanelRight />
          </button>
        </TicketHeader>
        <Conversation ticket={ticket} requested={requested} />
      </section>
      {ticket.item && (
        <Details
          ticket={ticket.item}
          isShown={showsDetails}
          hide={hideDetails}
          change={ticket.change}
        />
      )}
    </>
  )
}

type ConversationProps = { ticket: OpenTicket; requested: { kind: Kind } | undefined }

function Conversation({ ticket, requested }: ConversationProps) {
  const [seenId, setSeenId] = useState<string>()
  const { detail } = ticket
  if (!detail) return <ThreadSkeleton />
  return (
    <>
      <Thread ticket={detail} loadOlder={ticket.loadOlder} onSeen={setSeenId} />
      <Composer
        ticket={detail}
        seenId={seenId}
        requested={requested}
        update={ticket.update}
        refresh={ticket.refresh}
      />
    </>
  )
}

type HeaderProps = {
  id: string
  ticket: DeskTicketListItem | undefined
  children: preact.ComponentChildren
}

function TicketHeader({ id, ticket, children }: HeaderProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  // An opened ticket takes the focus, unless the page was loaded with it.
  const isFirst = useRef(document.activeElement === document.body)
  useEffect(() => {
    if (!isFirst.current) heading.current?.focus({ preventScroll: true })
    isFirst.current = false
  }, [id])
  return (
    <header class="ticket-header">
      <BackButton id={id} />
      <div class="grow">
        <h2 ref={heading} tabIndex={-1}>
          {ticket?.subject ?? <span class="skeleton" style={{ width: '60%' }} />}
        </h2>
        <p class="row small soft">
          <span class="truncate">{ticket?.user.display_name}</span>
          {ticket && <StatusMark status={ticket.status} />}
          {ticket && <PriorityMark priority={ticket.priority} />}
        </p>
      </div>
      {children}
    </header>
  )
}

/** Resolves or reopens the ticket. */
function SettleButton(props: { status: Status; change: (change: Change) => void }) {
  const isSettled = props.status === 'resolved' || props.status === 'closed'
  const Icon = isSettled ? RotateCcw : Check
  const name = isSettled ? 'Reopen' : 'Resolve'
  return (
    <button
      type="button"
      class="button settle"
      title={isSettled ? 'Reopen' : 'Resolve (e)'}
      onClick={() => props.change({ status: isSettled ? 'open' : 'resolved' })}
    >
      <Icon />
      <span class="name">{name}</span>
    </button>
  )
}

function BackButton({ id }: { id: string }) {
  return (
    <button
      type="button"
      class="button ghost icon back"
      aria-label="Back to the list"
      title="Back to the list (u)"
      onClick={() => backToList(id)}
    >
      <ArrowLeft />
    </button>
  )
}

/** Restores the list and the focus. */
function backToList(id: string) {
  navigate(withQuery({}, '/console/desk'))
  requestAnimationFrame(() => {
    const row = document.querySelector<HTMLElement>(`[data-ticket="${CSS.escape(id)}"] a`)
    const list = document.querySelector<HTMLElement>('.list-pane .virtual')
    ;(row ?? list)?.focus()
  })
}

async function changeWithUndo({ item, change }: OpenTicket, target: Change) {
  if (!item) return
  const before: Change = {
    ...(target.status && { status: item.status }),
    ...(target.priority && { priority: item.priority }),
    ...(target.assignee_id !== undefined && { assignee_id: item.assignee?.id ?? null }),
  }
  if (isSame(before, target)) return
  const isDone = await change(target)
  if (isDone) toast(changedText(target), { label: 'Undo', work: () => void change(before) })
}

const isSame = (a: Change, b: Change) =>
  a.status === b.status && a.priority === b.priority && a.assignee_id === b.assignee_id

function changedText({ status, priority }: Change): string {
  if (status) return `Status: ${statusNames[status].toLowerCase()}`
  return priority ? `Priority: ${priority}` : 'Assigned to you'
}
