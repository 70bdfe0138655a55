/**
 * Sends an event to all watchers once a second, by one timer that runs only while there are
 * watchers.
 */
import type { ServerResponse } from 'node:http'
import { BadRequest } from '../http/problem.ts'
import type { Clock } from '../sluice.ts'

const PERIOD_US = 1_000_000
export const MAX_LISTENERS = 100
/** A listener whose connection takes nothing for so many events in a row is cut off. */
export const MAX_MISSED = 10
/** A listener has its place for so long at least. Then it may have to make room for another. */
export const SURE_OF_PLACE_US = 10_000_000
/** How long a listener that lost its connection waits before it comes back. */
const RETRY_MS = 2_000

const HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  // A proxy that collects what it passes on would show nothing for a long time.
  'x-accel-buffering': 'no',
  connection: 'close',
}

interface Listener {
  readonly response: ServerResponse
  readonly address: string
  readonly sinceUs: number
  /** How many events it has missed in a row. */
  missed: number
}

export class LiveHub {
  readonly #clock: Clock
  readonly #snapshot: () => string
  /** The oldest first. */
  readonly #listeners = new Map<ServerResponse, Listener>()
  #event = ''
  #stopTimer: () => void = () => undefined

  constructor(clock: Clock, snapshot: () => string) {
    this.#clock = clock
    this.#snapshot = snapshot
  }

  get listeners(): number {
    return this.#listeners.size
  }

  /**
   * Answers with the stream. The first to come begins it; others are told what was told last, and
   * then hear what all hear.
   */
  join(response: ServerResponse): void {
    if (this.#listeners.size >= MAX_LISTENERS) this.#makeRoom()
    if (this.#listeners.size === 0) this.#tick()
    const address = response.req.socket.remoteAddress ?? ''
    this.#listeners.set(response, { response, address, sinceUs: this.#clock.nowUs(), missed: 0 })
    response.on('close', () => this.#leave(response))
    response.writeHead(200, HEADERS).write(`retry: ${RETRY_MS}\n\n${this.#event}`)
  }

  /** Ends every stream at once. */
  close(): void {
    for (const response of this.#listeners.keys()) {
      response.end()
      this.#leave(response)
    }
  }

  /**
   * Whether a listener reads cannot be known: the system takes small events for minutes on behalf
   * of one that never does. So places cannot be held for good: the oldest listener of the address
   * that has most of them makes room. An `EventSource` comes back by itself.
   */
  #makeRoom(): void {
    const oldest = this.#oldestOfMost()
    if (this.#clock.nowUs() - oldest.sinceUs < SURE_OF_PLACE_US) {
      throw new BadRequest(503, 'LISTENERS', `${MAX_LISTENERS} listen already, and there is no room for more`, { 'retry-after': '10' })
    }
    oldest.response.end()
    this.#leave(oldest.response)
  }

  #oldestOfMost(): Listener {
    const counts = new Map<string, number>()
    for (const { address } of this.#listeners.values()) counts.set(address, (counts.get(address) ?? 0) + 1)
    const most = Math.max(...counts.values())
    for (const listener of this.#listeners.values()) if (counts.get(listener.address) === most) return listener
    throw new Error('nobody listens')
  }

  #leave(response: ServerResponse): void {
    if (this.#listeners.delete(response) && this.#listeners.size === 0) this.#stopTimer()
  }

  #tick(): void {
    this.#event = `event: live\ndata: ${this.#snapshot()}\n\n`
    this.#stopTimer = this.#clock.setTimer(() => this.#tick(), PERIOD_US, false)
    for (const listener of this.#listeners.values()) this.#tell(listener)
  }

  /** Nothing is kept for a listener that is slow: each event says all there is to say. */
  #tell(listener: Listener): void {
    const { response } = listener
    if (!response.writableNeedDrain) {
      response.write(this.#event)
      listener.missed = 0
    } else if (listener.missed < MAX_MISSED) {
      listener.missed += 1
    } else {
      response.destroy()
      this.#leave(response)
    }
  }
}
