/**
 * What an algorithm is.
 *
 * An algorithm is arithmetic on a few numbers. It reads no clock, does no I/O, and imports nothing from the layers above: the time is
 * an argument, and where the numbers live is somebody else's business. Its twin in Lua has the same functions with the same names and
 * does the same steps, so that the two can be read side by side.
 *
 * **State** is a fixed count of doubles, `words`, lying in `s` from index `i` on. The functions that read never write; the ones that write
 * (`settle`, `take`, `give`, `cancel`) write the state in place. Whether that place is the truth or a private copy that will be compared
 * and swapped is the store's choice.
 *
 * **One decision** (decide.ts) is always the same walk: `fresh` or `settle`, then `waitUs`, then, if every limit of the decision
 * agrees, `take`. All verbs are faces of it.
 *
 * **Time** is whole microseconds. Everything rounds against the caller: waits up, permits left down.
 *
 * **Numbers.** State names the numbers it was written under (`Rule.numbers`). `settle` is called on every contact with a held key, before
 * anything else, and does two things that any call may write, a refused one and a mere question too:
 *  - clock repair: a state dated in the future beyond what the algorithm allows is re-dated, what was used is kept;
 *  - changed numbers: what was used is settled to now under the old numbers, then expressed in the new ones.
 */
export interface Algorithm<R extends Rule = Rule> {
  readonly type: string

  /** How many doubles one state is, or may become. */
  words(rule: R): number

  /** For states that grow: how many doubles this one may need after one more charge. Without it, always `words`. */
  neededWords?(rule: R, s: Float64Array, i: number): number

  /** Whether a cost may be taken ahead of its time (`reserve`, `acquire` as reserve and wait). */
  readonly bookable: boolean

  /** Writes the state of a key that has used nothing. */
  fresh(rule: R, s: Float64Array, i: number, nowUs: number): void

  /** Repairs the clock and moves to the present numbers. Tells whether it wrote. `written` is the rule the state was written under. */
  settle(rule: R, written: R, s: Float64Array, i: number, nowUs: number): boolean

  /** How long until `cost` would fit, if nothing else happened: 0 when it fits now. `cost` is at least 1 and at most the capacity. */
  waitUs(rule: R, s: Float64Array, i: number, nowUs: number, cost: number): number

  /** How long whoever is charged now must wait before acting, asked before the charge. Without it: as long as `waitUs` says. */
  delayUs?(rule: R, s: Float64Array, i: number, nowUs: number): number

  /** Charges `cost`, whether it fits or not: the caller has asked `waitUs` and decided. */
  take(rule: R, s: Float64Array, i: number, nowUs: number, cost: number): void

  /**
   * The short form of a decision: `settle` under unchanged numbers, `waitUs`, and `take` if that is 0. For callers that have one limit and
   * want no more than yes or no. `cost` is at least 1 and at most the capacity.
   */
  tryTake(rule: R, s: Float64Array, i: number, nowUs: number, cost: number): boolean

  /** When the charge that was just made was entered: `give` finds it by that. Later than now where the state is ahead of the clock. */
  enteredUs(s: Float64Array, i: number, nowUs: number): number

  /** Gives `cost` back, never above idle. `ofUs` (or -1) is when it was entered. Tells whether it wrote. */
  give(rule: R, s: Float64Array, i: number, nowUs: number, cost: number, ofUs: number): boolean

  /**
   * Gives a reservation back before its time: its cost minus what was reserved after it. After its time: nothing.
   * `ticket` is the state as the reservation left it. Tells whether it wrote.
   */
  cancel(rule: R, s: Float64Array, i: number, nowUs: number, cost: number, ticket: Float64Array): boolean

  /** If bookable: when whoever reserved the last `cost` permits of a ticket may act; in the past, if it never had to wait. */
  dueUs?(rule: R, ticket: Float64Array, cost: number): number

  /** If bookable: the ticket that a reservation of `cost` permits less would have been answered with. */
  shorten?(rule: R, ticket: Float64Array, cost: number): Float64Array

  /** Whole permits that would fit now. */
  remaining(rule: R, s: Float64Array, i: number, nowUs: number): number

  /** How long until the key is idle, as if never used. */
  resetUs(rule: R, s: Float64Array, i: number, nowUs: number): number

  /** The state as text, the way `inspect` shows it. Reading it back is a function beside the algorithm: only whoever looks into a store needs it (decoders.ts). */
  encode(rule: R, s: Float64Array, i: number): EncodedState

  /** The rule that these figures stand for, for settling a state that was written under them. */
  ruleOf(figures: readonly number[], maxAheadUs: number): R
}

/** A Redis string, or the fields of a Redis hash. */
export type EncodedState = string | Readonly<Record<string, string>>

/** A limit made ready to compute with: validated, reduced to lowest terms, with the products it needs computed once. Immutable. */
export interface Rule {
  readonly algorithm: Algorithm
  /** What an idle key admits at once. A larger cost is impossible. */
  readonly capacity: number
  /** The whole numbers that define the rule; for one algorithm always equally many. The first is never 0. */
  readonly figures: readonly number[]
  /** The figures as text: equal names mean equal behaviour, so a state written under one is valid under the other. */
  readonly numbers: string
  /** One window: how long a full charge is felt, and the longest step back of the clock that is waited out. */
  readonly windowUs: number
  /** How far a reservation may be booked ahead. Not part of the numbers: changing it changes no state. */
  readonly maxAheadUs: number
}

/** What a factory such as `gcra()` returns: plain data for people and JSON, with its algorithm under a symbol for the machine. */
export interface Limit {
  readonly type: string
  readonly [COMPILE]: (maxAheadUs: number) => Rule
}

/** A limit carries its own compiler, so that importing one algorithm bundles one. */
export const COMPILE: unique symbol = Symbol.for('sluice.compile')

/** Attaches the compiler where neither JSON nor a spread in a log shows it. */
export function limitOf<Data extends { readonly type: string }>(data: Data, compile: (maxAheadUs: number) => Rule): Readonly<Data> & Limit {
  const copy = Object.fromEntries(Object.entries(data).map(([name, value]) => [name, frozen(value)]))
  return Object.freeze(Object.defineProperty(copy, COMPILE, { value: compile })) as Readonly<Data> & Limit
}

/** A copy that nobody can change afterwards: the limit has been compiled from it. */
function frozen(value: unknown): unknown {
  return typeof value === 'object' && value !== null ? Object.freeze({ ...value }) : value
}

/** The figures that a state names. */
export function figuresNamed(numbers: string): number[] {
  return numbers.split(' ').map(Number)
}
