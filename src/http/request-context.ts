import { Elysia } from 'elysia'
import { AppError } from '../lib/errors.ts'
import { type Locale, negotiateLocale } from '../lib/i18n.ts'
import type { ServicePrincipal, UserPrincipal } from '../lib/principal.ts'
import type { ServiceScope } from '../lib/vocabulary.ts'
import type { Confirmation } from './confirmation.ts'
import type { RoutePolicy } from './route-table.ts'

/** Who may call a route: anybody, a person with an access token, an admin, a host with a verified address (or an
 *  admin), a person whose token comes the way of a socket's upgrade, another service with its key, or a command on this
 *  machine (which may also call what admins may). */
export type Access = 'public' | 'user' | 'admin' | 'host' | 'socket' | 'service' | 'operator'

/** Which limit counts a route's requests; by default the user's, or the address's when nobody is known. */
export type RouteLimit = 'login' | 'register' | 'default' | 'none'

const needsNothing = () => {}

/** What the pipeline found out about a request before its route ran. */
export class RequestContext {
  readonly requestId: string
  readonly #request: Request | undefined
  readonly #findIp: (request: Request) => string
  #ip: string | undefined
  /** The route that the request is for. */
  route: RoutePolicy | undefined
  /** Who shows a token or a key of ours, for the log: not yet authorized. */
  bearer: { user: string } | { key: string } | undefined
  /** Why the request was refused or failed. */
  failure: AppError | undefined
  userPrincipal: UserPrincipal | undefined
  servicePrincipal: ServicePrincipal | undefined
  /** The person who runs the command that sent the request. */
  operator: string | undefined
  /** How long the body of a HEAD would be, where nobody makes it. */
  headLength: number | undefined
  /** Of a route that reads its body itself: whether the caller may still do that.
   *  @throws unauthorized · forbidden */
  reauthorize: () => void = needsNothing

  constructor(requestId: string, request?: Request, findIp = (_: Request) => 'unknown') {
    this.requestId = requestId
    this.#request = request
    this.#findIp = findIp
  }

  get locale(): Locale {
    return negotiateLocale(this.#request?.headers.get('accept-language') ?? null)
  }

  get ip(): string {
    this.#ip ??= this.#request ? this.#findIp(this.#request) : 'unknown'
    return this.#ip
  }

  /** @throws unauthorized on a public route that was called without a token */
  get user(): UserPrincipal {
    if (!this.userPrincipal) throw new AppError('unauthorized')
    return this.userPrincipal
  }

  /** The person who acts and from where, for the audit log. */
  get byUser() {
    return { actor: { type: 'user', id: this.user.userId } as const, ip: this.ip }
  }

  /** The same, also for a service or a command. */
  get by() {
    const { ip, servicePrincipal, operator } = this
    if (operator !== undefined) return { actor: { type: 'command_line', id: operator } as const }
    if (!servicePrincipal) return this.byUser
    return { actor: { type: 'service_key', id: servicePrincipal.id } as const, ip }
  }
}

/** What every module's routes start from: `context` in the handlers, and the options that each route names, for the
 *  pipeline and for the API description: who may call it, what counts it, for services the scope
 *  that it takes, for uploads the largest file, and whether it asks again who holds the session. */
export const routeBase = new Elysia({ name: 'route-base' })
  .decorate('context', new RequestContext(''))
  .macro({
    access: (_access: Access) => ({}),
    limit: (_limit: RouteLimit) => ({}),
    scope: (_scope: ServiceScope) => ({}),
    maxFileBytes: (_maxFileBytes: number) => ({}),
    confirm: (_confirm: Confirmation) => ({}),
  })
