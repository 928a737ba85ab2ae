type Links = { [K in 'conversation' | 'ticket' | 'notification' | 'home']?: string | null }

/** The address in the app of a conversation, ticket or notification; undefined without a template for it. */
export function linkTo(links: Links, what: Exclude<keyof Links, 'home'>, id: string) {
  return links[what]?.replaceAll('{id}', encodeURIComponent(id))
}
