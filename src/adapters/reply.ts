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

/** What a reply of Fastify keeps for itself: under one symbol its headers, by their names in lower case. */
type Kept = Readonly<Record<symbol, Record<string, string> | undefined>>

/**
 * Under which symbol replies keep their headers; undefined until one was looked at, null if it could not be told. Written there, as our names
 * are in lower case already, headers take a fraction of the time of `header`, and setting them is most of what an admitted request costs.
 */
let place: symbol | null | undefined

export function setReplyHeaders(reply: FastifyReplyLike, headers: readonly string[]): void {
  // Not there in a reply of another copy of Fastify.
  const kept = place ? (reply as unknown as Kept)[place] : undefined
  if (kept === undefined) setOneByOne(reply, headers)
  else for (let k = 0; k < headers.length; k += 2) kept[headers[k] as string] = headers[k + 1] as string
}

function setOneByOne(reply: FastifyReplyLike, headers: readonly string[]): void {
  for (let k = 0; k < headers.length; k += 2) {
    const [name, value] = [headers[k] as string, headers[k + 1] as string]
    if (place === undefined) place = setAndWatched(reply, name, value)
    else reply.header(name, value)
  }
}

/**
 * Sets a header and tells where it went, if it was added to an object that the reply had before: such an object is the reply's own, because
 * Fastify itself could not add to one that replies share.
 */
function setAndWatched(reply: FastifyReplyLike, name: string, value: string): symbol | null {
  const kept = reply as unknown as Kept
  const without = Object.getOwnPropertySymbols(reply).flatMap((symbol) => {
    const object = kept[symbol]
    return typeof object === 'object' && object !== null && object[name] === undefined ? [{ symbol, object }] : []
  })
  reply.header(name, value)
  return without.find(({ symbol, object }) => kept[symbol] === object && object[name] === value)?.symbol ?? null
}

export function sendReply(reply: FastifyReplyLike, { status, headers, body }: Refusal): void {
  reply.code(status)
  setReplyHeaders(reply, headers)
  reply.send(body)
}
