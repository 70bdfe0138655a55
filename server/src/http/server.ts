/** The HTTP side: finds the path, answers, and keeps every client within bounds. */
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { Connections } from '../connections.ts'
import type { HeldBytes } from '../held-bytes.ts'
import type { Journal } from '../journal.ts'
import { nothingAt } from '../page/answer-page.ts'
import type { Tls } from '../tls.ts'
import { REQUEST_TIMEOUT_MS } from './body.ts'
import { MAX_TIMEOUT_MS } from './input.ts'
import { checkHost, checkOrigin } from './origin.ts'
import { BadRequest, problemOf } from './problem.ts'
import { type Client, MAX_AT_ONCE, Requests } from './requests.ts'
import { type Call, type Context, type Handler, type Reply, ROUTES } from './routes.ts'

export const MAX_CONNECTIONS = 10_000
/** Clients that take longer, to send the headers of a request or to take an answer, are cut off. */
const HEADERS_TIMEOUT_MS = 10_000
export const ANSWER_TIMEOUT_MS = 30_000
/** How often Node looks for clients that take too long. */
const TIMEOUTS_CHECKED_EVERY_MS = 1_000
const MAX_HEADER_BYTES = 16_384
/** Paths of a supervisor, which are always answered. */
const OF_SUPERVISORS = ['/healthz', '/readyz', '/metrics']

const TOO_MANY = `a connection must not have more than ${MAX_AT_ONCE} unanswered requests: none of them is answered`
const CLOSE = { connection: 'close' }

/** Bounds of a client, unless a test sets others. */
export interface HttpBounds {
  readonly maxConnections: number
  readonly headersTimeoutMs: number
  readonly requestTimeoutMs: number
}

const BOUNDS: HttpBounds = {
  maxConnections: MAX_CONNECTIONS,
  headersTimeoutMs: HEADERS_TIMEOUT_MS,
  requestTimeoutMs: REQUEST_TIMEOUT_MS,
}

export interface HttpOptions extends Context {
  readonly httpBounds: Partial<HttpBounds> | undefined
  /** The names that the service answers to, apart from addresses and localhost; undefined: all. */
  readonly hostNames: readonly string[] | undefined
  readonly journal: Journal
  /** Only their questions are answered. */
  readonly isForSupervisors?: boolean
}

export function httpServer(options: HttpOptions, tls?: Tls): Server {
  const { maxConnections, headersTimeoutMs, requestTimeoutMs } = { ...BOUNDS, ...options.httpBounds }
  const settings = {
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: headersTimeoutMs,
    requestTimeout: requestTimeoutMs,
    connectionsCheckingInterval: Math.min(TIMEOUTS_CHECKED_EVERY_MS, headersTimeoutMs),
  }
  const onRequest: RequestListener = (request, response) => {
    const client = requests.begin(request, response)
    if (client !== undefined) void answer(options, request, response, client)
  }
  const server = tls === undefined ? createServer(settings, onRequest) : createTlsServer({ ...settings, ...tls.options }, onRequest)
  const requests = new Requests(server, new Connections(server, maxConnections), (first) => {
    const { socket } = first.req
    options.journal.flooded(`${socket.remoteAddress}`)
    // In the middle of an answer nothing else can be said.
    if (first.headersSent) socket.destroy()
    else refuse(options, first, new BadRequest(429, 'PIPELINE', TOO_MANY, CLOSE))
  })
  tls?.add(server)
  return server
}

async function answer(options: HttpOptions, request: IncomingMessage, response: ServerResponse, client: Client): Promise<void> {
  try {
    checkHost(options.hostNames, request)
    checkOrigin(request)
    const { handler, path, params, query } = routed(request)
    if (client.isSpare) checkSpare(path, response)
    if (options.isForSupervisors && !OF_SUPERVISORS.includes(path)) throw nothingAt(path)
    checkToken(options, request, path)
    const call: Call = { request, response, path, params, query, client }
    const reply = await handler(options, call)
    if (reply !== undefined) send(options, response, reply)
  } catch (error) {
    if (client.left === undefined || error !== client.left) refuse(options, response, error)
  }
}

/** Nobody keeps a connection that came when all were taken. */
function checkSpare(path: string, response: ServerResponse): void {
  response.setHeader('connection', 'close')
  if (!OF_SUPERVISORS.includes(path)) throw new BadRequest(503, 'BUSY', 'all connections of the service are taken')
}

/** Looking is free, unless there are tokens for it. A token that may write may look. */
function checkToken(options: HttpOptions, { method, headers: { authorization } }: IncomingMessage, path: string): void {
  const { tokens, readTokens } = options
  const looks = method === 'GET' || method === 'HEAD'
  const isFree = looks ? readTokens === undefined || !showsCallers(path) || options.isForSupervisors : tokens === undefined
  if (isFree || tokens?.accept(authorization)) return
  const mayRead = readTokens?.accept(authorization) ?? false
  if (mayRead && looks) return
  if (mayRead) throw new BadRequest(403, 'TOKEN', 'this token may only read')
  throw new BadRequest(401, 'TOKEN', 'authorization must be Bearer and one of the tokens of the service', { 'www-authenticate': 'Bearer' })
}

/** The page itself, health and the description of the service tell nothing of anybody. */
function showsCallers(path: string): boolean {
  return path.startsWith('/v1/') || path === '/metrics'
}

function send({ readiness, held }: HttpOptions, response: ServerResponse, { status, body, type, headers }: Reply): void {
  // The connections of a server that stops must not be kept for more.
  if (readiness.isStopping) response.setHeader('connection', 'close')
  for (const name in headers) response.setHeader(name, headers[name] as string)
  if (body === undefined) {
    response.writeHead(status).end()
    return
  }
  const sent = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
  const described = { 'content-type': type, 'content-length': Buffer.byteLength(sent), 'x-content-type-options': 'nosniff' }
  response.writeHead(status, described).end(sent)
  holdIfNotTaken(held, response)
}

function holdIfNotTaken(held: HeldBytes, response: ServerResponse): void {
  if (response.writableLength > 0 && !response.req.socket.destroyed) holdUntilTaken(held, response)
}

/** Most answers are taken by the system at once. */
function holdUntilTaken(held: HeldBytes, response: ServerResponse): void {
  const { socket } = response.req
  // Behind others on its connection it may have to wait as long as they do, and then begins its own
  // time.
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
  if (problem.status === 500) options.journal.failed(error)
  if (error instanceof BadRequest) for (const [name, value] of Object.entries(error.headers)) response.setHeader(name, value)
  // A second at least: 0 would be an invitation to come back at once.
  if (typeof problem.retryAfterMs === 'number') response.setHeader('retry-after', Math.max(1, Math.ceil(problem.retryAfterMs / 1000)))
  else if (problem.status === 503 && !response.hasHeader('retry-after')) response.setHeader('retry-after', '1')
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
