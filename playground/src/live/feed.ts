/**
 * The stream of the service, opened again whenever it ends. Read by `fetch`, because an
 * `EventSource` cannot send a token.
 */
import { authorization, UNAUTHORIZED } from '../token.ts'
import type { LiveEvent } from './history.ts'

/** `locked`: reading needs a token, and ours is none or wrong. */
export type FeedState = 'connecting' | 'live' | 'reconnecting' | 'none' | 'locked'

export interface FeedListener {
  event(event: LiveEvent): void
  state(state: FeedState): void
}

const AGAIN_MS = 2_000

export class Feed {
  readonly #listener: FeedListener
  #leaving = new AbortController()
  #timer: ReturnType<typeof setTimeout> | undefined
  #wasLive: boolean

  /** `wasLive`: whether there was a service before, so that one that is away now will come back. */
  constructor(listener: FeedListener, wasLive: boolean) {
    this.#listener = listener
    this.#wasLive = wasLive
    listener.state('connecting')
    void this.#open()
  }

  again(): void {
    this.close()
    this.#listener.state('connecting')
    void this.#open()
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#leaving.abort()
  }

  async #open(): Promise<void> {
    this.#leaving = new AbortController()
    const { signal } = this.#leaving
    try {
      const response = await fetch('v1/live', { headers: authorization(), signal })
      if (response.status === UNAUTHORIZED) {
        this.#listener.state('locked')
        return
      }
      const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
      if (response.ok && isStream && response.body !== null) await this.#read(response.body)
    } catch {
      // A connection that breaks is one that has ended.
    }
    if (!signal.aborted) this.#lost()
  }

  async #read(body: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<void> {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      const events = (text + value).split('\n\n')
      text = events.pop() as string
      for (const event of events) this.#told(event)
    }
  }

  #told(event: string): void {
    const [, data] = /^event: live\ndata: (.*)$/.exec(event) ?? []
    if (data === undefined) return
    this.#wasLive = true
    this.#listener.state('live')
    this.#listener.event(JSON.parse(data) as LiveEvent)
  }

  /**
   * If there was a service, it is stopping or starting; if not, there is no service, and asking
   * again is left to the reader.
   */
  #lost(): void {
    this.#listener.state(this.#wasLive ? 'reconnecting' : 'none')
    if (this.#wasLive) this.#timer = setTimeout(() => void this.#open(), AGAIN_MS)
  }
}
