import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { Client, User } from '../../../client/src/client.ts'
import type { Blocks } from './blocks.ts'
import type { Inbox } from './inbox.ts'
import type { Outbox } from './outbox.ts'
import type { Session, Side } from './session.ts'

/** A signed-in person with the stores that stay open in every view. */
export type Me = {
  side: Side
  session: Session
  client: Client
  user: User
  inbox: Inbox
  outbox: Outbox
  blocks: Blocks
}

export const MeContext = createContext<Me | undefined>(undefined)

export function useMe(): Me {
  const me = useContext(MeContext)
  if (!me) throw new Error('nobody is logged in here')
  return me
}
