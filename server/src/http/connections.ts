/**
 * Requests that are under way on each connection. A client may send many before the first is answered (pipelining), and Node hands all of them over
 * as they come, however many wait. A connection with too many of them is refused as a whole.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Unanswered requests of one connection. */
export const MAX_AT_ONCE = 100
/** Unanswered requests of all connections. Beyond it only those go on that have few. */
export const MAX_REQUESTS = 20_000
const FEW = 8

interface Connection {
  /** Of the requests that are under way, in their order. */
  readonly underWay: Map<ServerResponse, Client>
  isRefused: boolean
}

/** Whoever sent a request. */
export class Client {
  #controller: AbortController | undefined
  #reason: Error | undefined

  /** Aborted when it goes away. Made when somebody asks for it: most requests are answered in less time than it takes. */
  get gone(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.#reason !== undefined) this.#controller.abort(this.#reason)
    return this.#controller.signal
  }

  leave(reason: Error): void {
    this.#reason = reason
    this.#controller?.abort(reason)
  }
}

/** Told of the first unanswered request of a connection that is refused; it must be answered so that the connection ends. */
export type OnRefused = (first: ServerResponse) => void

export class Connections {
  readonly #known = new WeakMap<Socket, Connection>()
  readonly #onRefused: OnRefused
  #requests = 0

  constructor(server: Server, onRefused: OnRefused) {
    this.#onRefused = onRefused
    server.on('connection', (socket) => this.#watch(socket))
  }

  /** Undefined if the request is not to be answered. */
  begin({ socket }: IncomingMessage, response: ServerResponse): Client | undefined {
    const connection = this.#known.get(socket) as Connection
    if (connection.isRefused) return undefined
    const client = new Client()
    connection.underWay.set(response, client)
    this.#requests += 1
    response.once('close', () => {
      connection.underWay.delete(response)
      this.#requests -= 1
      if (!response.writableFinished) client.leave(new Error('the client went away'))
    })
    const { size } = connection.underWay
    if (size > MAX_AT_ONCE || (size > FEW && this.#requests > MAX_REQUESTS)) this.#refuse(connection, socket)
    return connection.isRefused ? undefined : client
  }

  #watch(socket: Socket): void {
    const connection: Connection = { underWay: new Map(), isRefused: false }
    this.#known.set(socket, connection)
    // Node does not tell the responses whose turn has not come.
    socket.once('close', () => {
      for (const response of connection.underWay.keys()) if (response.socket === null) response.emit('close')
    })
  }

  #refuse(connection: Connection, socket: Socket): void {
    connection.isRefused = true
    for (const client of connection.underWay.values()) client.leave(new Error('too many requests at once'))
    const [first] = connection.underWay.keys() as Iterable<ServerResponse> as [ServerResponse]
    // In the middle of an answer nothing else can be said.
    if (first.headersSent) socket.destroy()
    else this.#onRefused(first)
  }
}
