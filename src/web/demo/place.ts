import { computed } from '@preact/signals'
import { navigate, query, withQuery } from '../kit/router.ts'
import { type Side, sides } from './session.ts'

export const tabs = ['chat', 'tickets', 'notifications'] as const
export type Tab = (typeof tabs)[number]

/** The place of both people is in the URL, such as `?left=chat.ID`, so that reload and the back button work. */
export function placeOf(side: Side): { tab: Tab; id: string | undefined } {
  const [name, id] = (query.value.get(side) ?? '').split('.')
  return { tab: tabs.find((tab) => tab === name) ?? 'chat', id }
}

/** The URL with one person in another place. */
export const linkTo = (side: Side, tab: Tab, id?: string) =>
  withQuery({ [side]: id === undefined ? tab : `${tab}.${id}` })

export const go = (side: Side, tab: Tab, id?: string) => navigate(linkTo(side, tab, id))

/** The visible person on a phone. */
export const shownSide = computed<Side>(
  () => sides.find((side) => side === query.value.get('person')) ?? 'left',
)
export const linkToSide = (side: Side) => withQuery({ person: side })
