/** Chance that can be had again: equal seeds give equal sequences, on every machine. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed | 0
    // Seeds that lie side by side begin alike: walk a little apart first.
    for (let k = 0; k < 4; k++) this.#bits()
  }

  /** Mulberry32. */
  #bits(): number {
    this.#state = (this.#state + 0x6d_2b_79_f5) | 0
    let t = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return (t ^ (t >>> 14)) >>> 0
  }

  /** From 0 to below 1. */
  fraction(): number {
    return this.#bits() / 2 ** 32
  }

  chance(probability: number): boolean {
    return this.fraction() < probability
  }

  /** A whole number from `least` to `most`. */
  whole(least: number, most: number): number {
    const fine = (this.#bits() * 2 ** 21 + (this.#bits() >>> 11)) / 2 ** 53
    return Math.min(most, least + Math.floor(fine * (most - least + 1)))
  }

  /**
   * A whole number from `least` to `most`, where every order of magnitude is as likely as any
   * other. `least` is at least 1.
   */
  magnitude(least: number, most: number): number {
    const grown = Math.floor(least * (most / least) ** this.fraction())
    return Math.min(most, Math.max(least, grown))
  }

  pick<T>(from: readonly T[]): T {
    return from[this.whole(0, from.length - 1)] as T
  }

  /** One of the choices, as likely as its weight. */
  weighted<T>(choices: readonly (readonly [weight: number, choice: T])[]): T {
    let left = this.fraction() * choices.reduce((sum, [weight]) => sum + weight, 0)
    for (const [weight, choice] of choices) {
      left -= weight
      if (left < 0) return choice
    }
    return (choices.at(-1) as readonly [number, T])[1]
  }
}
