/** Fastify's request and reply, for the adapters of Fastify and of Nest. */
import type { Entry } from '../http/entry.ts'
import { besides } from '../http/headers.ts'
import type { Refusal } from '../http/refusal.ts'
import { routeText } from '../http/route.ts'
import type { Decision } from '../limiter/decision.ts'
import { Incoming, leavesLess, type NodeRequest, type NodeResponse, refusalHeaders } from './incoming.ts'

/** What is needed of Fastify's request. */
export interface FastifyRequestLike {
  readonly raw: NodeRequest
  readonly routeOptions: { readonly config: object; readonly url?: string | undefined; readonly method?: unknown }
  readonly is404: boolean
}

/** What is needed of Fastify's reply. */
export interface FastifyReplyLike {
  readonly raw: NodeResponse
  code(status: number): unknown
  header(name: string, value: string): unknown
  getHeader(name: string): unknown
  send(body: string): unknown
  hijack(): unknown
}

export class FastifyIncoming extends Incoming {
  readonly #request: FastifyRequestLike

  constructor(request: FastifyRequestLike) {
    super(request.raw)
    this.#request = request
  }

  override get route(): string | undefined {
    const { url, method } = this.#request.routeOptions
    return url === undefined || this.#request.is404 ? undefined : routeText(method, url)
  }
}

/** `earlier` is what another limiter has decided about the same request. */
export function setReplyHeaders(reply: FastifyReplyLike, { headers, decision }: Entry, earlier: Decision | undefined): void {
  if (earlier === undefined || headers.length === 0) putOnReply(reply, headers)
  else
    putOnReply(
      reply,
      besides(headers, (name) => reply.getHeader(name), leavesLess(decision, earlier)),
    )
}

export function sendReply(reply: FastifyReplyLike, refusal: Refusal, earlier: Decision | undefined): void {
  reply.code(refusal.status)
  putOnReply(
    reply,
    refusalHeaders(refusal, (name) => reply.getHeader(name), earlier),
  )
  reply.send(refusal.body)
}

export function putOnReply(reply: FastifyReplyLike, headers: readonly string[]): void {
  for (let k = 0; k < headers.length; k += 2) reply.header(headers[k] as string, headers[k + 1] as string)
}
