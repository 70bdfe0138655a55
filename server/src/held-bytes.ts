/**
 * Bytes that the service holds for its clients: what has come of a request that is not complete
 * yet, and answers that were not taken yet. Complete requests come and answers are taken within
 * milliseconds, so bytes beyond the bound are held for clients that are slow, or only pretend: the
 * oldest is ended to make room.
 */

/** For all clients together, over HTTP and gRPC. */
export const MAX_HELD_BYTES = 67_108_864

/** Why a client is ended: its time is up, or there was no room for it any longer. */
export type Ended = 'late' | 'full'

export class HeldBytes {
  readonly #maxBytes: number
  /** In the order in which they came. */
  readonly #entries = new Set<ClientBytes>()
  #bytes = 0

  constructor(maxBytes: number = MAX_HELD_BYTES) {
    this.#maxBytes = maxBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  /** `end` is called at most once, and not after `leave`. */
  enter(maxMs: number, end: (why: Ended) => void): ClientBytes {
    const holding: ClientBytes = new ClientBytes(
      maxMs,
      (bytes) => this.#grow(bytes),
      (why) => {
        this.#entries.delete(holding)
        this.#bytes -= holding.bytes
        if (why !== undefined) end(why)
      },
    )
    this.#entries.add(holding)
    return holding
  }

  #grow(bytes: number): void {
    this.#bytes += bytes
    for (const oldest of this.#entries) {
      if (this.#bytes <= this.#maxBytes) return
      oldest.end('full')
    }
  }
}

/** The bytes held for one client. */
export class ClientBytes {
  bytes = 0
  readonly #onGrow: (bytes: number) => void
  readonly #onEnd: (why: Ended | undefined) => void
  readonly #timer: ReturnType<typeof setTimeout>
  #isOver = false

  constructor(maxMs: number, onGrow: (bytes: number) => void, onEnd: (why: Ended | undefined) => void) {
    this.#onGrow = onGrow
    this.#onEnd = onEnd
    this.#timer = setTimeout(() => this.end('late'), maxMs)
    this.#timer.unref()
  }

  grow(bytes: number): void {
    if (this.#isOver) return
    this.bytes += bytes
    this.#onGrow(bytes)
  }

  /** It is complete, or taken, or the client has gone. */
  leave(): void {
    this.#over(undefined)
  }

  end(why: Ended): void {
    this.#over(why)
  }

  #over(why: Ended | undefined): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#onEnd(why)
  }
}
