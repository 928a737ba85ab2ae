import { MessagesSquare } from 'lucide-preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { isFocusLost } from '../../kit/kept-focus.ts'
import { lazy } from '../../kit/lazy.tsx'
import { Empty } from '../../kit/states.tsx'
import { texts } from '../../kit/texts.tsx'
import { selectedId } from '../panes.tsx'
import { ListPane, useTicketList } from './list-pane.tsx'
import { useSelection } from './selection-bar.tsx'
import { useAdmins } from './ticket.ts'

const words = texts.console.desk

const TicketPane = lazy(async () => (await import('./ticket-pane.tsx')).TicketPane)

/** When a ticket closes, its row gets the focus that was in it: at once, because the next key may lead elsewhere. */
function useFocusAfterBack(openId: string | undefined) {
  const before = useRef(openId)
  useLayoutEffect(() => {
    const left = before.current
    before.current = openId
    if (openId !== undefined || left === undefined || !isFocusLost()) return
    const row = document.querySelector<HTMLElement>(`[data-id="${CSS.escape(left)}"] a`)
    ;(row ?? document.querySelector<HTMLElement>('.list-pane .virtual'))?.focus()
  }, [openId])
}

export function DeskPage() {
  const openId = selectedId()
  const list = useTicketList()
  const selection = useSelection(list.items)
  useAdmins()
  useFocusAfterBack(openId)
  const at = list.items.findIndex(({ id }) => id === openId)
  return (
    <div class={`desk${openId === undefined ? '' : ' has-ticket'}`}>
      <h1 class="visually-hidden">{texts.console.areas.desk}</h1>
      <ListPane list={list} openId={openId} selection={selection} />
      {openId === undefined ? (
        <section class="thread-pane none" aria-label={words.ticket}>
          <Empty icon={MessagesSquare} title={words.noneOpen} text={words.noneOpenText} />
        </section>
      ) : (
        <TicketPane
          key={openId}
          id={openId}
          row={list.items[at]}
          nextId={at < 0 ? undefined : (list.items[at + 1] ?? list.items[at - 1])?.id}
          hasSelection={selection.tickets.length > 0}
        />
      )}
    </div>
  )
}
