/**
 * The requests that are under way on each connection. A client may send many before the first is
 * answered (pipelining), and Node hands all of them over as they come, however many wait. A
 * connection with too many of them is refused as a whole.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type Connection, type Connections, clientOf } from '../connections.ts'

/** Unanswered requests of one connection. */
export const MAX_AT_ONCE = 100
/** Unanswered requests of all connections. Beyond it only those go on that have few. */
export const MAX_REQUESTS = 20_000
const FEW = 8

interface Pipeline {
  readonly connection: Connection
  /** Of the requests that are under way, in their order. */
  readonly underWay: Map<ServerResponse, Client>
  isRefused: boolean
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

/**
 * Told of the first unanswered request of a connection that is refused; it must be answered so that
 * the connection ends.
 */
export type OnRefused = (first: ServerResponse) => void

export class Requests {
  readonly #pipelines = new WeakMap<Socket, Pipeline>()
  readonly #connections: Connections
  readonly #onRefused: OnRefused
  #count = 0

  constructor(server: Server, connections: Connections, onRefused: OnRefused) {
    this.#connections = connections
    this.#onRefused = onRefused
    server.on('connection', (socket) => this.#watch(socket))
    server.on('secureConnection', (socket: Socket) => this.#watch(socket))
  }

  /** Undefined if the request is not to be answered. */
  begin({ socket }: IncomingMessage, response: ServerResponse): Client | undefined {
    const pipeline = this.#pipelines.get(socket) as Pipeline
    const { connection, underWay } = pipeline
    if (pipeline.isRefused) return undefined
    const client = new Client(connection.isSpare)
    underWay.set(response, client)
    this.#connections.begin(connection)
    this.#count += 1
    response.once('close', () => {
      underWay.delete(response)
      this.#connections.end(connection)
      this.#count -= 1
      if (!response.writableFinished) client.leave(new Error('the client went away'))
    })
    if (underWay.size > MAX_AT_ONCE || (underWay.size > FEW && this.#count > MAX_REQUESTS)) this.#refuse(pipeline)
    return pipeline.isRefused ? undefined : client
  }

  #watch(socket: Socket): void {
    const connection = this.#connections.of(clientOf(socket))
    if (connection === undefined) {
      socket.destroy()
      return
    }
    const underWay: Pipeline['underWay'] = new Map()
    this.#pipelines.set(socket, { connection, underWay, isRefused: false })
    socket.once('close', () => {
      // Node does not tell the responses whose turn has not come.
      for (const response of underWay.keys()) if (response.socket === null) response.emit('close')
    })
  }

  #refuse(pipeline: Pipeline): void {
    pipeline.isRefused = true
    for (const client of pipeline.underWay.values()) client.leave(new Error('too many requests at once'))
    const [first] = pipeline.underWay.keys() as Iterable<ServerResponse> as [ServerResponse]
    this.#onRefused(first)
  }
}
