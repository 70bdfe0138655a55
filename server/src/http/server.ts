/** The HTTP side: finds the path, answers, and keeps every client within bounds. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Held } from '../held.ts'
import { nothingAt } from '../page/answer-page.ts'
import { REQUEST_TIMEOUT_MS } from './body.ts'
import { type Client, Connections, MAX_AT_ONCE } from './connections.ts'
import { MAX_TIMEOUT_MS } from './input.ts'
import { checkHost, checkOrigin } from './origin.ts'
import { BadRequest, problemOf } from './problem.ts'
import { type Call, type Context, type Handler, type Reply, ROUTES } from './routes.ts'

/** Clients that take longer, to send the headers of a request or to take an answer, are cut off. */
const HEADERS_TIMEOUT_MS = 10_000
export const ANSWER_TIMEOUT_MS = 30_000
/** How often Node looks for clients that take too long. */
const TIMEOUTS_CHECKED_EVERY_MS = 2_000
const MAX_HEADER_BYTES = 16_384
const MAX_CONNECTIONS = 10_000

const TOO_MANY = `a connection must not have more than ${MAX_AT_ONCE} unanswered requests: none of them is answered`
const CLOSE = { connection: 'close' }

export interface HttpOptions extends Context {
  /** The names that the service answers to, apart from addresses and localhost; undefined: all. */
  readonly hostNames: readonly string[] | undefined
  /** Told of what is our fault. */
  onFailure(error: unknown): void
}

export function httpServer(options: HttpOptions): Server {
  const server = createServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: TIMEOUTS_CHECKED_EVERY_MS,
    },
    (request, response) => {
      const client = connections.begin(request, response)
      if (client !== undefined) void answer(options, request, response, client)
    },
  )
  const connections = new Connections(server, (first) => refuse(options, first, new BadRequest(429, 'PIPELINE', TOO_MANY, CLOSE)))
  server.maxConnections = MAX_CONNECTIONS
  return server
}

async function answer(options: HttpOptions, request: IncomingMessage, response: ServerResponse, client: Client): Promise<void> {
  try {
    checkHost(options.hostNames, request)
    checkOrigin(request)
    const { handler, path, params, query } = routed(request)
    checkToken(options, request)
    const call: Call = { request, response, path, params, query, client }
    const reply = await handler(options, call)
    if (reply !== undefined) send(options, response, reply)
  } catch (error) {
    refuse(options, response, error)
  }
}

/** Looking is free. */
function checkToken({ tokens }: HttpOptions, { method, headers }: IncomingMessage): void {
  if (tokens === undefined || method === 'GET' || method === 'HEAD' || tokens.accept(headers.authorization)) return
  throw new BadRequest(401, 'TOKEN', 'authorization must be Bearer and one of the tokens of the service', { 'www-authenticate': 'Bearer' })
}

function send({ isStopping, held }: HttpOptions, response: ServerResponse, { status, body, type, headers }: Reply): void {
  // The connections of a server that stops must not be kept for more.
  if (isStopping()) response.setHeader('connection', 'close')
  for (const name in headers) response.setHeader(name, headers[name] as string)
  if (body === undefined) {
    response.writeHead(status).end()
    return
  }
  const sent = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(sent) }).end(sent)
  holdIfNotTaken(held, response)
}

function holdIfNotTaken(held: Held, response: ServerResponse): void {
  if (response.writableLength > 0 && !response.req.socket.destroyed) holdUntilTaken(held, response)
}

/** Most answers are taken by the system at once. */
function holdUntilTaken(held: Held, response: ServerResponse): void {
  const { socket } = response.req
  // Behind others on its connection it may have to wait as long as they do, and then begins its own time.
  const isBehind = response.socket === null
  const holding = held.enter(isBehind ? MAX_TIMEOUT_MS : ANSWER_TIMEOUT_MS, () => socket.destroy())
  response.once('close', () => holding.leave())
  if (isBehind) {
    response.once('socket', () => {
      holding.leave()
      process.nextTick(holdIfNotTaken, held, response)
    })
  }
  holding.grow(response.writableLength)
}

function refuse(options: HttpOptions, response: ServerResponse, error: unknown): void {
  // A response whose turn has not come does not know that its connection is gone.
  if (response.destroyed || response.headersSent || response.req.socket.destroyed) return
  const problem = problemOf(error)
  if (problem.status === 500) options.onFailure(error)
  if (error instanceof BadRequest) for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value)
  // A second at least: 0 would be an invitation to come back at once.
  if (typeof problem.retryAfterMs === 'number') response.setHeader('retry-after', Math.max(1, Math.ceil(problem.retryAfterMs / 1000)))
  send(options, response, { status: problem.status, body: problem, type: 'application/problem+json' })
}

interface Routed {
  readonly handler: Handler
  readonly path: string
  readonly params: readonly string[]
  readonly query: URLSearchParams
}

const NO_QUERY = new URLSearchParams()

function routed({ method = '', url = '/' }: IncomingMessage): Routed {
  const mark = url.indexOf('?')
  const path = mark < 0 ? url : url.slice(0, mark)
  const query = mark < 0 ? NO_QUERY : new URLSearchParams(url.slice(mark + 1))
  const { verbs, params } = found(path)
  const verb = method === 'HEAD' ? 'GET' : method
  const handler = Object.hasOwn(verbs, verb) ? verbs[verb] : undefined
  if (handler !== undefined) return { handler, path, params, query }
  const allow = Object.keys(verbs).join(', ')
  throw new BadRequest(405, 'METHOD', `${method} ${path} is not possible: there is ${allow}`, { allow })
}

const PATTERNS = Object.entries(ROUTES)
  .filter(([pattern]) => pattern.includes(':'))
  .map(([pattern, verbs]) => ({ parts: pattern.split('/'), verbs }))

function found(path: string): { verbs: Readonly<Record<string, Handler>>; params: readonly string[] } {
  const verbs = Object.hasOwn(ROUTES, path) && !path.includes(':') ? ROUTES[path] : undefined
  if (verbs !== undefined) return { verbs, params: [] }
  const parts = path.split('/')
  for (const pattern of PATTERNS) {
    if (pattern.parts.length !== parts.length || !pattern.parts.every((part, k) => part === ':' || part === parts[k])) continue
    return { verbs: pattern.verbs, params: parts.filter((_, k) => pattern.parts[k] === ':').map(decoded) }
  }
  throw nothingAt(path)
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw new BadRequest(400, 'PATH', `${JSON.stringify(part.slice(0, 60))} must be percent-encoded UTF-8`)
  }
}
