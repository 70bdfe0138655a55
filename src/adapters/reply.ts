/** Fastify's request and reply, for the adapters of Fastify and of Nest. */
import type { Refusal } from '../http/refusal.ts'
import type { NodeRequest, NodeResponse } from './incoming.ts'

/** What is needed of Fastify's request. */
export interface FastifyRequestLike {
  readonly raw: NodeRequest
  readonly routeOptions: { readonly config: object }
  readonly is404: boolean
}

/** What is needed of Fastify's reply. */
export interface FastifyReplyLike {
  readonly raw: NodeResponse
  code(status: number): unknown
  header(name: string, value: string): unknown
  send(body: string): unknown
  hijack(): unknown
}

export function setReplyHeaders(reply: FastifyReplyLike, headers: readonly string[]): void {
  for (let k = 0; k < headers.length; k += 2) reply.header(headers[k] as string, headers[k + 1] as string)
}

export function sendReply(reply: FastifyReplyLike, { status, headers, body }: Refusal): void {
  reply.code(status)
  setReplyHeaders(reply, headers)
  reply.send(body)
}
