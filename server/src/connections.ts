/**
 * The connections of a port, so many at most. When all are taken, a new one takes the place of the
 * one that has been without a request for the longest. Where every one of them has a request, it is
 * one of a few spare ones, which are only for asking how the service is: or a supervisor would
 * restart a service that is merely busy.
 */
import type { Server, Socket } from 'node:net'

const SPARE_CONNECTIONS = 100

export class Connection {
  readonly socket: Socket
  /** It came when all others were taken. */
  readonly isSpare: boolean
  /** How many are under way. */
  requests = 0
  isOver = false

  constructor(socket: Socket, isSpare: boolean) {
    this.socket = socket
    this.isSpare = isSpare
  }
}

export class Connections {
  /** By the address and port of the client: with TLS its requests come on another socket. */
  readonly #byClient = new Map<string, Connection>()
  /** Those without a request; the one that has been so for the longest first. */
  readonly #idle = new Set<Connection>()
  readonly #spare = new Set<Connection>()
  readonly #max: number
  /** Without the spare ones. */
  #count = 0

  constructor(server: Server, max: number) {
    this.#max = max
    server.on('connection', (socket: Socket) => this.#watch(socket))
  }

  /** By its client, as `address:port`. Undefined: it has ended. */
  of(client: string): Connection | undefined {
    return this.#byClient.get(client)
  }

  begin(connection: Connection): void {
    connection.requests += 1
    this.#idle.delete(connection)
  }

  end(connection: Connection): void {
    connection.requests -= 1
    if (connection.requests === 0 && !connection.isOver && !connection.isSpare) this.#idle.add(connection)
  }

  #watch(socket: Socket): void {
    if (this.#count >= this.#max) this.#drop(this.#idle)
    const isSpare = this.#count >= this.#max
    if (isSpare && this.#spare.size >= SPARE_CONNECTIONS) this.#drop(this.#spare)
    const connection = new Connection(socket, isSpare)
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
    })
  }

  /** Ends the first of some connections, and has its place at once. */
  #drop(connections: ReadonlySet<Connection>): void {
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
}

export function clientOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress}:${remotePort}`
}
