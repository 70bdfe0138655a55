/** The guard, and the filter that answers for it. See nest.ts. */
import { Catch, HttpException, Inject } from '@nestjs/common'
import { SluiceError } from '../errors.ts'
import type { Entry } from '../http/entry.ts'
import type { Refusal } from '../http/refusal.ts'
import { CLIENT_LEFT, isPromise } from '../http/request.ts'
import type { HttpDecision } from '../http/settling.ts'
import type { Decision } from '../limiter/decision.ts'
import { type FastifyReplyLike, sendReply, setReplyHeaders } from './fastify-reply.ts'
import { guardsOf, NestLimits, type Target } from './nest-limits.ts'
import { answer, leaveAtEnd, NodeHttpRequest, type NodeRequest, type NodeResponse, setHeaders } from './node-request.ts'
import { nestClient } from './trusted-address.ts'

/**
 * Thrown by the guard, answered by the module's filter. Catch it in a filter of your own to answer
 * otherwise; one that catches everything finds the status and the body where it finds those of all
 * of Nest's exceptions.
 */
export class RateLimitedError extends HttpException {
  readonly statusCode: number
  /** Undefined if the client left while it waited. */
  readonly refusal: Refusal | undefined
  readonly decision: Decision | undefined

  constructor({ refusal, decision }: Entry) {
    const status = refusal?.status ?? CLIENT_LEFT
    super(refusal === undefined ? 'Client Closed Request' : 'Too Many Requests', status)
    this.name = 'RateLimitedError'
    this.statusCode = status
    this.refusal = refusal
    this.decision = decision
  }

  /**
   * The body as a filter would write it: an object, if it is JSON. Read only when it is asked for,
   * because the module's own filter does not.
   */
  override getResponse(): string | object {
    const { refusal } = this
    if (refusal === undefined) return super.getResponse()
    return contentTypeOf(refusal)[1]?.includes('json') ? (JSON.parse(refusal.body) as object) : refusal.body
  }
}

/**
 * Without a stack: where refusals come from is known, and finding it out takes longer than all the
 * rest.
 */
function rateLimited(entry: Entry): RateLimitedError {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    return new RateLimitedError(entry)
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

const CONTENT_TYPE = 'content-type'

/** Name and value, or nothing. */
function contentTypeOf({ headers }: Refusal): readonly string[] {
  const at = headers.indexOf(CONTENT_TYPE)
  return at < 0 ? [] : headers.slice(at, at + 2)
}

/** Those that belong to the response, whatever filter writes its body, and in whatever form. */
function withoutContentType({ headers }: Refusal): readonly string[] {
  const at = headers.indexOf(CONTENT_TYPE)
  return at < 0 ? headers : [...headers.slice(0, at), ...headers.slice(at + 2)]
}

/** The parts of Nest's contexts that are needed. */
interface NestHost {
  getType(): string
  switchToHttp(): { getRequest(): unknown; getResponse(): unknown }
}
export interface NestContext extends NestHost {
  getHandler(): Target
  getClass(): Target
  getArgs(): unknown
}

type AnyResponse = NodeResponse | FastifyReplyLike

function isReply(response: AnyResponse): response is FastifyReplyLike {
  return 'raw' in response
}

type NestRequest = NodeRequest & { readonly raw?: NodeRequest; readonly res?: AnyResponse; rateLimit?: HttpDecision | undefined }

/** A request with its response, if it is known. */
interface Exchange {
  readonly request: NestRequest
  readonly response: AnyResponse | undefined
}

/** The request in the context of GraphQL, as Apollo, Mercurius and graphql-ws put it there. */
interface GraphqlContext {
  readonly req?: NestRequest
  readonly res?: AnyResponse
  readonly reply?: AnyResponse
  readonly extra?: { readonly request?: NestRequest }
}

/** Undefined for what is neither HTTP nor GraphQL. */
function exchangeOf(context: NestContext): Exchange | undefined {
  const type = context.getType()
  if (type === 'http') {
    const http = context.switchToHttp()
    return { request: http.getRequest() as NestRequest, response: http.getResponse() as AnyResponse }
  }
  if (type !== 'graphql') return undefined
  const [, , { req, res, reply, extra } = {}] = context.getArgs() as [unknown, unknown, GraphqlContext?]
  const request = req ?? extra?.request
  if (request === undefined) {
    throw new SluiceError('CONFIG', 'the context of GraphQL has no request: give it one, context: ({ req, res }) => ({ req, res })')
  }
  return { request, response: res ?? reply ?? request.res }
}

/** The route of a request is its handler. */
function nestRoute(context: NestContext): string {
  return `${context.getClass().name}.${context.getHandler().name}`
}

/**
 * Of `@UseGuards(AuthGuard, RateLimitGuard)`: limits when its turn comes, so that it knows whom the
 * guards before it have signed in.
 */
export class RateLimitGuard {
  protected readonly limits: NestLimits

  constructor(limits: NestLimits) {
    this.limits = limits
  }

  canActivate(context: NestContext): boolean | Promise<boolean> {
    const gates = this.limits.gatesOf(context.getClass(), context.getHandler())
    const exchange = exchangeOf(context)
    return exchange === undefined || this.#pass(context, exchange, gates, 0, earlierOf(context, exchange))
  }

  /**
   * Through one gate after the other. `earlier` is what was decided about the same request before.
   */
  #pass(
    context: NestContext,
    exchange: Exchange,
    gates: ReturnType<NestLimits['gatesOf']>,
    k: number,
    earlier: Decision | undefined,
  ): boolean | Promise<boolean> {
    const gate = gates[k]
    if (gate === undefined) return true
    const { request, response } = exchange
    const node = response === undefined || !isReply(response) ? response : response.raw
    const goOn = (entry: Entry) => {
      request.rateLimit = entry.decision
      if (entry.gone) throw rateLimited(entry)
      const told = entry.refusal === undefined ? entry : { ...entry, headers: withoutContentType(entry.refusal) }
      if (node !== undefined) leaveAtEnd(entry, node)
      // The end of a handler without a response, such as that of a subscription, is not known.
      else entry.decision?.release?.({ outcome: 'ignored' })
      if (response !== undefined) tell(response, told, earlier)
      if (entry.refusal !== undefined) throw rateLimited(entry)
      return this.#pass(context, exchange, gates, k + 1, entry.decision ?? earlier)
    }
    const entered = gate.enter(request, new NodeHttpRequest(request.raw ?? request, context, nestRoute, request, nestClient), node)
    return isPromise(entered) ? entered.then(goOn) : goOn(entered)
  }
}

/** Of one request of GraphQL several handlers are asked, and its headers tell of the last. */
function earlierOf(context: NestContext, { request }: Exchange): Decision | undefined {
  return context.getType() === 'http' ? request.rateLimit : undefined
}

function tell(response: AnyResponse, entry: Entry, earlier: Decision | undefined): void {
  if (isReply(response)) setReplyHeaders(response, entry, earlier)
  else if (!response.headersSent) setHeaders(response, entry, earlier)
}

Inject(NestLimits)(RateLimitGuard, undefined, 0)

function isRateLimitGuard(guard: unknown): boolean {
  return (
    guard instanceof RateLimitGuard ||
    guard === RateLimitGuard ||
    (typeof guard === 'function' && guard.prototype instanceof RateLimitGuard)
  )
}

/**
 * Of the whole application. Where `@UseGuards` names the guard it is limited there, and not here as
 * well.
 */
export class GlobalRateLimitGuard extends RateLimitGuard {
  /**
   * Whether `@UseGuards` names it: by handler and class, because reading metadata takes longer than
   * a decision.
   */
  readonly #isElsewhere = new WeakMap<Target, Map<Target, boolean>>()

  override canActivate(context: NestContext): boolean | Promise<boolean> {
    return this.#isLimitedElsewhere(context.getClass(), context.getHandler()) || super.canActivate(context)
  }

  #isLimitedElsewhere(type: Target, handler: Target): boolean {
    const known = this.#isElsewhere.get(type)?.get(handler)
    if (known !== undefined) return known
    const isElsewhere = guardsOf(type, handler).some(isRateLimitGuard)
    this.#isElsewhere.set(type, (this.#isElsewhere.get(type) ?? new Map<Target, boolean>()).set(handler, isElsewhere))
    return isElsewhere
  }
}

export class RateLimitFilter {
  /** GraphQL answers with the error that is returned. */
  catch(error: RateLimitedError, host: NestHost): RateLimitedError | undefined {
    const { refusal } = error
    if (host.getType() !== 'http') return error
    if (refusal === undefined) return undefined
    const response = host.switchToHttp().getResponse() as AnyResponse
    // The guard has set the others.
    const rest = { ...refusal, headers: contentTypeOf(refusal) }
    if (isReply(response)) sendReply(response, rest, undefined)
    else answer(response, rest, undefined)
    return undefined
  }
}

Catch(RateLimitedError)(RateLimitFilter)
