/** The stream of the service. A browser comes back to it by itself; where it gives up, we try again. */
import type { LiveEvent } from './history.ts'

export type FeedState = 'connecting' | 'live' | 'reconnecting' | 'none'

export interface FeedListener {
  event(event: LiveEvent): void
  state(state: FeedState): void
}

const AGAIN_MS = 2_000

export class Feed {
  readonly #listener: FeedListener
  #source: EventSource | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #wasLive: boolean

  /** `wasLive`: whether there was a service before, so that one that is away now will come back. */
  constructor(listener: FeedListener, wasLive: boolean) {
    this.#listener = listener
    this.#wasLive = wasLive
    listener.state('connecting')
    this.#open()
  }

  again(): void {
    this.close()
    this.#listener.state('connecting')
    this.#open()
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#source?.close()
  }

  #open(): void {
    const source = new EventSource('v1/live')
    this.#source = source
    source.addEventListener('live', ({ data }) => {
      this.#wasLive = true
      this.#listener.state('live')
      this.#listener.event(JSON.parse(data) as LiveEvent)
    })
    source.addEventListener('error', () => this.#failed(source))
  }

  /**
   * A connection that broke is opened again by the browser. One that was answered with something else is closed for good: if there was a
   * service, it is stopping or starting; if not, nobody serves it, and asking again is for whoever looks.
   */
  #failed(source: EventSource): void {
    this.#listener.state(this.#wasLive ? 'reconnecting' : 'none')
    if (source.readyState === EventSource.CLOSED && this.#wasLive) this.#timer = setTimeout(() => this.#open(), AGAIN_MS)
  }
}
