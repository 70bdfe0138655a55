/**
 * Connections, and the requests that are under way on each. A client may send many before the first
 * is answered (pipelining), and Node hands all of them over as they come, however many wait. A
 * connection with too many of them is refused as a whole.
 *
 * When all connections are taken, a new one takes the place of the one that has been without a
 * request for the longest. Where every one of them has a request, it is one of a few spare ones,
 * which are only for asking how the service is: or a supervisor would restart a service that is
 * merely busy.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Unanswered requests of one connection. */
export const MAX_AT_ONCE = 100
/** Unanswered requests of all connections. Beyond it only those go on that have few. */
export const MAX_REQUESTS = 20_000
const FEW = 8
export const MAX_CONNECTIONS = 10_000
const SPARE_CONNECTIONS = 100

interface Connection {
  readonly socket: Socket
  /** It came when all others were taken. */
  readonly isSpare: boolean
  /** Of the requests that are under way, in their order. */
  readonly underWay: Map<ServerResponse, Client>
  isRefused: boolean
  isOver: boolean
}

/** The sender of a request. */
export class Client {
  /** It may only ask how the service is. */
  readonly isSpare: boolean
  #controller: AbortController | undefined
  #reason: Error | undefined

  constructor(isSpare: boolean) {
    this.isSpare = isSpare
  }

  /**
   * Aborted when it goes away. Made on demand: most requests are answered in less time than it
   * takes.
   */
  get gone(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.#reason !== undefined) this.#controller.abort(this.#reason)
    return this.#controller.signal
  }

  /** Why it has gone away, or was refused; undefined while it waits for an answer. */
  get left(): Error | undefined {
    return this.#reason
  }

  leave(reason: Error): void {
    this.#reason = reason
    this.#controller?.abort(reason)
  }
}

function clientOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}

/**
 * Told of the first unanswered request of a connection that is refused; it must be answered so that
 * the connection ends.
 */
export type OnRefused = (first: ServerResponse) => void

export class Connections {
  readonly #known = new WeakMap<Socket, Connection>()
  /** By address and port of the client. */
  readonly #byClient = new Map<string, Connection>()
  /**
   * Those without a request, and those that are spare; the one that has been so for the longest
   * first.
   */
  readonly #idle = new Set<Connection>()
  readonly #spare = new Set<Connection>()
  readonly #max: number
  readonly #onRefused: OnRefused
  /** Without the spare ones. */
  #count = 0
  #requests = 0

  constructor(server: Server, max: number, onRefused: OnRefused) {
    this.#max = max
    this.#onRefused = onRefused
    server.on('connection', (socket) => this.#watch(socket))
    // With TLS requests come on another socket, of the same client.
    server.on('secureConnection', (socket: Socket) => {
      const connection = this.#byClient.get(clientOf(socket))
      if (connection !== undefined) this.#known.set(socket, connection)
      else socket.destroy()
    })
  }

  /** Undefined if the request is not to be answered. */
  begin({ socket }: IncomingMessage, response: ServerResponse): Client | undefined {
    const connection = this.#known.get(socket) as Connection
    if (connection.isRefused) return undefined
    const client = new Client(connection.isSpare)
    connection.underWay.set(response, client)
    this.#idle.delete(connection)
    this.#requests += 1
    response.once('close', () => {
      connection.underWay.delete(response)
      this.#requests -= 1
      if (connection.underWay.size === 0 && !connection.isOver && !connection.isSpare) this.#idle.add(connection)
      if (!response.writableFinished) client.leave(new Error('the client went away'))
    })
    const { size } = connection.underWay
    if (size > MAX_AT_ONCE || (size > FEW && this.#requests > MAX_REQUESTS)) this.#refuse(connection)
    return connection.isRefused ? undefined : client
  }

  #watch(socket: Socket): void {
    if (this.#count >= this.#max) this.#end(this.#idle)
    const isSpare = this.#count >= this.#max
    if (isSpare && this.#spare.size >= SPARE_CONNECTIONS) this.#end(this.#spare)
    const connection: Connection = { socket, isSpare, underWay: new Map(), isRefused: false, isOver: false }
    this.#known.set(socket, connection)
    const client = clientOf(socket)
    this.#byClient.set(client, connection)
    if (isSpare) this.#spare.add(connection)
    else {
      this.#count += 1
      this.#idle.add(connection)
    }
    socket.once('close', () => {
      if (this.#byClient.get(client) === connection) this.#byClient.delete(client)
      this.#leave(connection)
      // Node does not tell the responses whose turn has not come.
      for (const response of connection.underWay.keys()) if (response.socket === null) response.emit('close')
    })
  }

  /** Ends the first of some connections, and has its place at once. */
  #end(connections: ReadonlySet<Connection>): void {
    const [first] = connections
    if (first === undefined) return
    this.#leave(first)
    first.socket.destroy()
  }

  #leave(connection: Connection): void {
    if (connection.isOver) return
    connection.isOver = true
    this.#idle.delete(connection)
    this.#spare.delete(connection)
    if (!connection.isSpare) this.#count -= 1
  }

  #refuse(connection: Connection): void {
    connection.isRefused = true
    for (const client of connection.underWay.values()) client.leave(new Error('too many requests at once'))
    const [first] = connection.underWay.keys() as Iterable<ServerResponse> as [ServerResponse]
    this.#onRefused(first)
  }
}
