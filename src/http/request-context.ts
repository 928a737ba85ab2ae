import { Elysia } from 'elysia'
import { AppError } from '../lib/errors.ts'
import { type Locale, negotiateLocale } from '../lib/i18n.ts'
import type { Client, ServicePrincipal, UserPrincipal } from '../lib/principal.ts'
import type { ServiceScope } from '../lib/vocabulary.ts'
import type { Confirmation } from './confirmation.ts'
import type { RoutePolicy } from './route-table.ts'

/** `host` is a host with a verified address, or an admin; a command (`operator`) may also call admin routes. */
export type Access = 'public' | 'user' | 'admin' | 'host' | 'socket' | 'service' | 'operator'

/** `default` is the limit of the user, or of the address for anonymous requests. */
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
  failure: AppError | undefined
  userPrincipal: UserPrincipal | undefined
  servicePrincipal: ServicePrincipal | undefined
  operator: string | undefined
  /** The Content-Length of the response to a HEAD, for routes that do not create the body. */
  headLength: number | undefined
  /** For routes that read their body themselves: checks again that the caller may use the route.
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

  get client(): Client {
    const userAgent = this.#request?.headers.get('user-agent')?.slice(0, 256) ?? null
    return { ip: this.ip, userAgent }
  }

  get user(): UserPrincipal {
    if (!this.userPrincipal) throw new AppError('token_missing')
    return this.userPrincipal
  }

  get service(): ServicePrincipal {
    if (!this.servicePrincipal) throw new AppError('token_missing')
    return this.servicePrincipal
  }

  get byUser() {
    return { actor: { type: 'user', id: this.user.userId } as const, ip: this.ip }
  }

  get by() {
    const { ip, servicePrincipal, operator } = this
    if (operator !== undefined) return { actor: { type: 'command_line', id: operator } as const }
    if (!servicePrincipal) return this.byUser
    return { actor: { type: 'service_key', id: servicePrincipal.id } as const, ip }
  }
}

/** An application with what every route may use. */
export type RouteApp = typeof routeBase
export const routeBase = new Elysia({ name: 'route-base' })
  .decorate('context', new RequestContext(''))
  .macro({
    access: (_access: Access) => ({}),
    limit: (_limit: RouteLimit) => ({}),
    scope: (_scope: ServiceScope) => ({}),
    maxFileBytes: (_maxFileBytes: number) => ({}),
    confirm: (_confirm: Confirmation) => ({}),
  })
