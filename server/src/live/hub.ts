/** Everybody who watches is told once a second, by one timer that runs only while somebody does. */
import type { ServerResponse } from 'node:http'
import { BadRequest } from '../http/problem.ts'
import type { Clock } from '../sluice.ts'

const PERIOD_US = 1_000_000
export const MAX_LISTENERS = 100
/** Whoever has taken nothing for so many events in a row is cut off. */
export const MAX_MISSED = 10
/** How long a listener that lost its connection waits before it comes back. */
const RETRY_MS = 2_000

const HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  // A proxy that collects what it passes on would show nothing for a long time.
  'x-accel-buffering': 'no',
  connection: 'close',
}

export class LiveHub {
  readonly #clock: Clock
  readonly #snapshot: () => string
  /** How many events each listener has missed in a row. */
  readonly #missed = new Map<ServerResponse, number>()
  #event = ''
  #stopTimer: () => void = () => undefined

  constructor(clock: Clock, snapshot: () => string) {
    this.#clock = clock
    this.#snapshot = snapshot
  }

  get listeners(): number {
    return this.#missed.size
  }

  /** Answers with the stream. The first to come begins it; others are told what was told last, and then hear what all hear. */
  join(response: ServerResponse): void {
    if (this.#missed.size >= MAX_LISTENERS) {
      throw new BadRequest(503, 'LISTENERS', `${MAX_LISTENERS} listen already, and there is no room for more`, { 'retry-after': '10' })
    }
    if (this.#missed.size === 0) this.#tick()
    this.#missed.set(response, 0)
    response.on('close', () => this.#leave(response))
    response.writeHead(200, HEADERS).write(`retry: ${RETRY_MS}\n\n${this.#event}`)
  }

  /** Ends every stream at once. */
  close(): void {
    for (const response of this.#missed.keys()) {
      response.end()
      this.#leave(response)
    }
  }

  #leave(response: ServerResponse): void {
    if (this.#missed.delete(response) && this.#missed.size === 0) this.#stopTimer()
  }

  #tick(): void {
    this.#event = `event: live\ndata: ${this.#snapshot()}\n\n`
    this.#stopTimer = this.#clock.setTimer(() => this.#tick(), PERIOD_US, false)
    for (const [response, missed] of this.#missed) this.#tell(response, missed)
  }

  /** Nothing is kept for a listener that is slow: each event says all there is to say. */
  #tell(response: ServerResponse, missed: number): void {
    if (!response.writableNeedDrain) {
      response.write(this.#event)
      this.#missed.set(response, 0)
    } else if (missed < MAX_MISSED) {
      this.#missed.set(response, missed + 1)
    } else {
      response.destroy()
      this.#leave(response)
    }
  }
}
