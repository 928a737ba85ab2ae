import { computed } from '@preact/signals'
import { navigate, query, withQuery } from '../ui/router.ts'
import { type Side, sides } from './session.ts'

export const tabs = ['chat', 'tickets', 'notifications'] as const
export type Tab = (typeof tabs)[number]

/** Where both people are is in the address, `?left=chat.ID`: so a reload and the back button do what people expect. */
export function placeOf(side: Side): { tab: Tab; id: string | undefined } {
  const [name, id] = (query.value.get(side) ?? '').split('.')
  return { tab: tabs.find((tab) => tab === name) ?? 'chat', id }
}

/** The address where one person is elsewhere. */
export const linkTo = (side: Side, tab: Tab, id?: string) =>
  withQuery({ [side]: id === undefined ? tab : `${tab}.${id}` })

export const go = (side: Side, tab: Tab, id?: string) => navigate(linkTo(side, tab, id))

/** On a phone there is room for one. */
export const shownSide = computed<Side>(
  () => sides.find((side) => side === query.value.get('person')) ?? 'left',
)
export const linkToSide = (side: Side) => withQuery({ person: side })
