import { Elysia } from 'elysia'
import { AppError } from '../lib/errors.ts'
import { type Locale, negotiateLocale } from '../lib/i18n.ts'
import type { ServicePrincipal, UserPrincipal } from '../lib/principal.ts'
import type { ServiceScope } from '../lib/vocabulary.ts'
import type { Confirmation } from './confirmation.ts'
import type { RoutePolicy } from './route-table.ts'

/** The callers of a route: anybody; a person with an access token; an admin; a host with a verified address (or an
 *  admin); a person whose token comes with a socket's upgrade; another service with its key; or a command on this
 *  machine (which may also call admin routes). */
export type Access = 'public' | 'user' | 'admin' | 'host' | 'socket' | 'service' | 'operator'

/** The limit that counts a route's requests; by default the user's, or the address's for anonymous requests. */
export type RouteLimit = 'login' | 'register' | 'default' | 'none'

const needsNothing = () => {}

export class RequestContext {
  readonly requestId: string
  readonly #request: Request | undefined
  readonly #findIp: (request: Request) => string
  #ip: string | undefined
  route: RoutePolicy | undefined
  /** The user or service key of a valid credential, for the log: not yet authorized. */
  bearer: { user: string } | { key: string } | undefined
  /** The error that the request was answered with. */
  failure: AppError | undefined
  userPrincipal: UserPrincipal | undefined
  servicePrincipal: ServicePrincipal | undefined
  /** The person who runs the command that sent the request. */
  operator: string | undefined
  /** The length that the answer to a HEAD declares, for routes that do not make the body. */
  headLength: number | undefined
  /** For routes that read their body themselves: checks again that the caller is still allowed.
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

  /** The acting person and their address, for the audit log. */
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

/** The base of every module's routes: `context` in the handlers, and the options of each route for the pipeline and
 *  the API description. Those are access, limit, a service's scope, the largest upload, and the confirmation of the
 *  session. */
export const routeBase = new Elysia({ name: 'route-base' })
  .decorate('context', new RequestContext(''))
  .macro({
    access: (_access: Access) => ({}),
    limit: (_limit: RouteLimit) => ({}),
    scope: (_scope: ServiceScope) => ({}),
    maxFileBytes: (_maxFileBytes: number) => ({}),
    confirm: (_confirm: Confirmation) => ({}),
  })
