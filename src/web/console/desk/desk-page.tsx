import { MessagesSquare } from 'lucide-preact'
import { useEffect } from 'preact/hooks'
import { path } from '../../ui/router.ts'
import { Empty } from '../../ui/states.tsx'
import { loadAdmins } from './admins.ts'
import './desk.css'
import { ListPane } from './list-pane.tsx'
import { useSelection } from './selection.ts'
import { useTicketList } from './ticket-list.ts'
import { TicketPane } from './ticket-pane.tsx'

export function DeskPage() {
  const [, , , part = ''] = path.value.split('/')
  const openId = part === '' ? undefined : part
  const list = useTicketList()
  const selection = useSelection(list.items)
  useEffect(() => void loadAdmins(), [])
  return (
    <div class={`desk${openId === undefined ? '' : ' has-ticket'}`}>
      <h1 class="visually-hidden">Desk</h1>
      <ListPane list={list} openId={openId} selection={selection} />
      {openId === undefined ? (
        <section class="thread-pane none" aria-label="Ticket">
          <Empty icon={MessagesSquare} title="No ticket is open">
            <p>Choose one in the list. Press ? for the keys.</p>
          </Empty>
        </section>
      ) : (
        <TicketPane
          key={openId}
          id={openId}
          row={list.items.find(({ id }) => id === openId)}
          hasSelection={selection.tickets.length > 0}
          onChanged={list.replace}
        />
      )}
    </div>
  )
}
