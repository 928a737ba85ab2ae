import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { Client, User } from '../../../client/src/client.ts'
import type {
  openBlocks,
  openInbox,
  openNotifications,
  openOutbox,
  Used,
} from '../../../client/src/state.ts'
import type { Session, Side } from './session.ts'

/** A signed-in person with the stores that stay open in every view. */
export type Me = {
  side: Side
  session: Session
  client: Client
  user: User
  inbox: Used<typeof openInbox>
  outbox: Used<typeof openOutbox>
  blocks: Used<typeof openBlocks>
  notifications: Used<typeof openNotifications>
}

export const MeContext = createContext<Me | undefined>(undefined)

export function useMe(): Me {
  const me = useContext(MeContext)
  if (!me) throw new Error('nobody is logged in here')
  return me
}
