/** How many permits are held, by key. */
export class Inflight {
  readonly #byKey = new Map<string, Held>()
  /**
   * The key that was counted last. It stays while nothing of it is held, so that a key that is
   * taken and released again and again costs nothing.
   */
  #last: Held = { key: '', count: 0 }

  /** So many permits of a key, or so many less. Answers how many there were with them. */
  add(key: string, permits: number): number {
    const held = this.#last.key === key ? this.#last : this.#turnTo(key)
    const before = held.count
    held.count += permits
    return Math.max(before, held.count)
  }

  of(key: string): number {
    return this.#byKey.get(key)?.count ?? 0
  }

  get total(): number {
    let total = 0
    for (const { count } of this.#byKey.values()) total += count
    return total
  }

  #turnTo(key: string): Held {
    if (this.#last.count === 0) this.#byKey.delete(this.#last.key)
    const held = this.#byKey.get(key) ?? { key, count: 0 }
    this.#byKey.set(key, held)
    this.#last = held
    return held
  }
}

interface Held {
  readonly key: string
  count: number
}
