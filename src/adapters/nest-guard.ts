/** The guard, its decorators, and the filter that answers for it. See nest.ts. */
import { HttpException } from '@nestjs/common'
import { SluiceError, shown } from '../errors.ts'
import { type Entry, Gate } from '../http/gate.ts'
import type { HttpOptions } from '../http/options.ts'
import type { Refusal } from '../http/refusal.ts'
import { type AnyRequest, CLIENT_LEFT, isPromise } from '../http/request.ts'
import type { Decision } from '../limiter/decision.ts'
import type { Store } from '../stores/store.ts'
import { answer, closing, Incoming, leaveAtEnd, type NodeRequest, type NodeResponse, setHeaders } from './incoming.ts'
import { type FastifyReplyLike, sendReply, setReplyHeaders } from './reply.ts'

// biome-ignore lint/suspicious/noExplicitAny: limits of any names, with or without plans
export type NestOptions = HttpOptions<AnyRequest, any, Store, any>
export type NestModuleOptions = NestOptions & {
  /** Limits that only apply where `@Limit` names them, instead of those above. */
  readonly named?: Readonly<Record<string, NestOptions>>
}

interface Metadata {
  defineMetadata(key: string, value: unknown, target: object): void
  getMetadata(key: string, target: object): unknown
}

/** What reflect-metadata, which every Nest application loads, adds to `Reflect`. */
export const metadata = Reflect as unknown as Metadata

const NAMES = 'sluice:limits'
const DEFAULT = 'default'

/** On a handler or a controller: the limits to apply, in order. `'default'` is that of the module. */
export function Limit(...names: [string, ...string[]]): MethodDecorator & ClassDecorator {
  return decorator(names)
}

/** On a handler or a controller: not limited. */
export function SkipLimit(): MethodDecorator & ClassDecorator {
  return decorator([])
}

function decorator(names: readonly string[]): MethodDecorator & ClassDecorator {
  return ((target: object, _property?: unknown, descriptor?: { value?: object }) => {
    metadata.defineMetadata(NAMES, names, descriptor?.value ?? target)
  }) as MethodDecorator & ClassDecorator
}

/**
 * Thrown by the guard, answered by the module's filter. Catch it in a filter of your own to answer otherwise; one that catches everything finds
 * the status and the body where it finds those of all of Nest's exceptions.
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

  /** The body as a filter would write it: an object, if it is JSON. Read only when somebody asks, because the module's own filter does not. */
  override getResponse(): string | object {
    const { refusal } = this
    if (refusal === undefined) return super.getResponse()
    return contentTypeOf(refusal)[1]?.includes('json') ? (JSON.parse(refusal.body) as object) : refusal.body
  }
}

/** Without a stack: where refusals come from is known, and finding it out takes longer than all the rest. */
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

/** Name and value. */
function contentTypeOf({ headers }: Refusal): readonly string[] {
  const at = headers.indexOf(CONTENT_TYPE)
  return headers.slice(at, at + 2)
}

/** Those that belong to the response whoever writes its body, and in whatever form. */
function ofLimits({ headers }: Refusal): readonly string[] {
  const at = headers.indexOf(CONTENT_TYPE)
  return [...headers.slice(0, at), ...headers.slice(at + 2)]
}

/** What is needed of Nest's contexts. */
interface NestHost {
  getType(): string
  switchToHttp(): { getRequest(): unknown; getResponse(): unknown }
}
export interface NestContext extends NestHost {
  // biome-ignore lint/complexity/noBannedTypes: Nest's own declaration
  getHandler(): Function
  // biome-ignore lint/complexity/noBannedTypes: Nest's own declaration
  getClass(): Function
}

type AnyResponse = NodeResponse | FastifyReplyLike

function isReply(response: AnyResponse): response is FastifyReplyLike {
  return 'raw' in response
}

export class RateLimitGuard {
  readonly #gates: ReadonlyMap<string, Gate<AnyRequest, NodeResponse>>

  constructor({ named = {}, ...options }: NestModuleOptions) {
    const all = Object.entries({ [DEFAULT]: options, ...named })
    this.#gates = new Map(all.map(([name, each]) => [name, new Gate<AnyRequest, NodeResponse>(each, closing)]))
  }

  canActivate(context: NestContext): boolean | Promise<boolean> {
    if (context.getType() !== 'http') return true
    const names = (metadata.getMetadata(NAMES, context.getHandler()) ?? metadata.getMetadata(NAMES, context.getClass())) as
      | string[]
      | undefined
    return this.#pass(context, names ?? [DEFAULT], 0)
  }

  #pass(context: NestContext, names: readonly string[], k: number): boolean | Promise<boolean> {
    if (k === names.length) return true
    const request = context.switchToHttp().getRequest() as NodeRequest & { raw?: NodeRequest; rateLimit?: Decision | undefined }
    const response = context.switchToHttp().getResponse() as AnyResponse
    const node = isReply(response) ? response.raw : response
    const goOn = (entry: Entry) => {
      request.rateLimit = entry.decision
      if (entry.gone) throw rateLimited(entry)
      const headers = entry.refusal === undefined ? entry.headers : ofLimits(entry.refusal)
      if (isReply(response)) setReplyHeaders(response, headers)
      else setHeaders(response, headers)
      if (entry.refusal !== undefined) throw rateLimited(entry)
      leaveAtEnd(entry, node)
      return this.#pass(context, names, k + 1)
    }
    const entered = this.#gate(names[k] as string).enter(request, new Incoming(request.raw ?? request), node)
    return isPromise(entered) ? entered.then(goOn) : goOn(entered)
  }

  #gate(name: string): Gate<AnyRequest, NodeResponse> {
    const gate = this.#gates.get(name)
    if (gate !== undefined) return gate
    throw new SluiceError('CONFIG', `@Limit(${shown(name)}): there is no such limit, there is ${[...this.#gates.keys()].join(', ')}`)
  }
}

export class RateLimitFilter {
  catch({ refusal }: RateLimitedError, host: NestHost): void {
    if (refusal === undefined) return
    const response = host.switchToHttp().getResponse() as AnyResponse
    // The guard has set the others.
    const rest = { ...refusal, headers: contentTypeOf(refusal) }
    if (isReply(response)) sendReply(response, rest)
    else answer(response, rest)
  }
}
