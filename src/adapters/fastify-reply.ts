/** Fastify's request and reply, for the adapters of Fastify and of Nest. */
import type { Entry } from '../http/entry.ts'
import { besides } from '../http/headers.ts'
import type { Refusal } from '../http/refusal.ts'
import { routeText } from '../http/route.ts'
import type { Decision } from '../limiter/decision.ts'
import { leavesLess, type NodeRequest, type NodeResponse } from './node-request.ts'

/** The parts of Fastify's request that are needed. */
export interface FastifyRequestLike {
  readonly raw: NodeRequest
  readonly routeOptions: { readonly config: object; readonly url?: string | undefined; readonly method?: unknown }
  readonly is404: boolean
}

/** The parts of Fastify's reply that are needed. */
export interface FastifyReplyLike {
  readonly raw: NodeResponse
  code(status: number): unknown
  header(name: string, value: string): unknown
  getHeader(name: string): unknown
  send(body: string): unknown
  hijack(): unknown
}

/** Undefined for what is not found. */
export function fastifyRoute({ routeOptions: { url, method }, is404 }: FastifyRequestLike): string | undefined {
  return url === undefined || is404 ? undefined : routeText(method, url)
}

/** `earlier` is what another limiter has decided about the same request. */
export function setReplyHeaders(reply: FastifyReplyLike, { headers, decision }: Entry, earlier: Decision | undefined): void {
  if (earlier === undefined || headers.length === 0) putOnReply(reply, headers)
  else putOnReply(reply, besidesOnReply(reply, headers, leavesLess(decision, earlier)))
}

export function sendReply(reply: FastifyReplyLike, { status, headers, body }: Refusal, earlier: Decision | undefined): void {
  reply.code(status)
  putOnReply(reply, earlier === undefined ? headers : besidesOnReply(reply, headers, true))
  reply.send(body)
}

function besidesOnReply(reply: FastifyReplyLike, headers: readonly string[], binds: boolean): string[] {
  return besides(headers, (name) => reply.getHeader(name), binds)
}

function putOnReply(reply: FastifyReplyLike, headers: readonly string[]): void {
  for (let k = 0; k < headers.length; k += 2) reply.header(headers[k] as string, headers[k + 1] as string)
}
