/**
 * The keys that are refused most often, in a fixed amount of memory: Space-Saving (Metwally,
 * Agrawal and El Abbadi, 2005).
 *
 * There are `PLACES` counters. A key that holds one adds to it. A key that holds none takes over
 * the lowest counter with what stands on it, plus one, and remembers how much of it is not its own:
 * its error. So
 *
 *   count - error  <=  how often the key was refused  <=  count
 *
 * The counters add up to N at most, the number of refusals, and what is taken over is the lowest:
 * so a key that was refused more often than N / PLACES is always here.
 *
 * Everything is halved every five minutes, so that the list is about now. How often a key was
 * refused is then rounded down, and so are the two sides of the line above; N is not. Since halving
 * keeps the order, all that was said stays true. An error is at most N / PLACES + 1.
 *
 * The counters lie in order, highest first, and `#firstOf` says where those with a certain count
 * begin. Adding one swaps a counter with the first of its equals, where it may grow without leaving
 * the order: the same few steps, however many counters there are.
 */
import type { Clock } from '../sluice.ts'

export const PLACES = 1_024
export const HALVED_EVERY_US = 300_000_000

export interface RefusedKey {
  readonly limiter: string
  readonly key: string
  readonly count: number
  /** How much of the count may belong to keys that were here before. */
  readonly error: number
}

type Counter = { -readonly [Field in keyof RefusedKey]: RefusedKey[Field] } & { id: string }

export class TopRefused {
  readonly #clock: Pick<Clock, 'nowUs'>
  readonly #places: number
  readonly #counters: Counter[] = []
  readonly #placeOf = new Map<string, number>()
  readonly #firstOf = new Map<number, number>()
  #halvedUs: number

  constructor(clock: Pick<Clock, 'nowUs'>, places: number = PLACES) {
    this.#clock = clock
    this.#places = places
    this.#halvedUs = clock.nowUs()
  }

  refused(limiter: string, key: string): void {
    this.#halveIfDue()
    const id = `${limiter}\0${key}`
    this.#addOne(this.#placeOf.get(id) ?? this.#taken(id, limiter, key))
  }

  /** Highest first. */
  *keys(): Iterable<RefusedKey> {
    this.#halveIfDue()
    yield* this.#counters
  }

  /** A place at the end: a free one, or the lowest with what stands on it. */
  #taken(id: string, limiter: string, key: string): number {
    const isFull = this.#counters.length === this.#places
    const last = isFull ? (this.#counters.pop() as Counter) : undefined
    if (last !== undefined) this.#placeOf.delete(last.id)
    const count = last?.count ?? 0
    const place = this.#counters.push({ id, limiter, key, count, error: count }) - 1
    if (!this.#firstOf.has(count)) this.#firstOf.set(count, place)
    this.#placeOf.set(id, place)
    return place
  }

  #addOne(place: number): void {
    const counter = this.#counters[place] as Counter
    const { count } = counter
    const first = this.#firstOf.get(count) as number
    this.#put(this.#counters[first] as Counter, place)
    this.#put(counter, first)
    counter.count = count + 1
    if (this.#counters[first + 1]?.count === count) this.#firstOf.set(count, first + 1)
    else this.#firstOf.delete(count)
    if (!this.#firstOf.has(count + 1)) this.#firstOf.set(count + 1, first)
  }

  #put(counter: Counter, place: number): void {
    this.#counters[place] = counter
    this.#placeOf.set(counter.id, place)
  }

  #halveIfDue(): void {
    const times = Math.floor((this.#clock.nowUs() - this.#halvedUs) / HALVED_EVERY_US)
    if (times < 1) return
    this.#halvedUs += times * HALVED_EVERY_US
    const before = this.#counters.splice(0)
    this.#placeOf.clear()
    this.#firstOf.clear()
    for (const counter of before) this.#keepHalved(counter, 2 ** times)
  }

  #keepHalved(counter: Counter, divisor: number): void {
    const own = Math.floor((counter.count - counter.error) / divisor)
    const count = Math.floor(counter.count / divisor)
    if (count === 0) return
    const place = this.#counters.push({ ...counter, count, error: count - own }) - 1
    this.#placeOf.set(counter.id, place)
    if (!this.#firstOf.has(count)) this.#firstOf.set(count, place)
  }
}
