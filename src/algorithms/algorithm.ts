/**
 * The contract of an algorithm.
 *
 * An algorithm is arithmetic on a few numbers. It reads no clock, does no I/O, and imports nothing
 * from the layers above: the time is an argument, and the store decides where the numbers lie.
 * Redis runs the same functions: a generator turns this TypeScript into Lua
 * (docs/decisions/lua-from-typescript.md), which is why it is written in a small part of the
 * language. An algorithm is at most twelve functions, of which eight are in all of them.
 *
 * **State** is a few doubles, lying in `s` from index `i` on. All zeros is the state of a key that
 * has used nothing. The functions that read never write; `repair`, `charge` and `giveBack` write
 * the state in place. The store decides whether that place is the state itself or a private copy
 * that it compares and swaps.
 *
 * **One decision** (decide.ts) is always the same walk: `repair`, then `untilUs`, then, if every
 * limit of the decision agrees, `charge`. All verbs are faces of it.
 *
 * **Time** is whole microseconds. Everything rounds against the caller: waits up, permits left
 * down.
 *
 * **Numbers.** What is used belongs to the key, the capacity to the caller. A state is read by the
 * rule it was written under, `own`; no function here compares it with a capacity: callers bring
 * `room`. Only `charge` writes a state under other numbers, those of `to`, and keeps every permit
 * that is in use. See docs/decisions/changed-numbers.md.
 */
export interface Algorithm<R extends Rule = Rule> {
  readonly type: string

  /** Whether a cost may be taken ahead of its time (`reserve`, `acquire` as reserve and wait). */
  readonly bookable: boolean

  /**
   * Whether a caller that was charged acts only after `dueUs`, as the queue of a leaky bucket does.
   */
  readonly spaced: boolean

  /**
   * Whether all that is used leaves at one moment, as a fixed window ends. Without it, each charge
   * is felt for a window of its own.
   */
  readonly endsAtOnce?: boolean

  /**
   * Whether what is charged stays in use until it is given back: then decisions are permits, and a
   * wait may end before its time.
   */
  readonly untilReleased?: boolean

  /** The largest capacity that a rule may have, where it is less than `MAX_PERMITS`. */
  readonly maxCapacity?: number

  /** The rule that these figures stand for. */
  ruleOf(figures: readonly number[]): R

  /**
   * For states that grow: how many doubles this one may need after one more charge. Without it,
   * always `words` of the rule.
   */
  neededWords?(s: Float64Array, i: number): number

  /**
   * Repairs a state that is dated in the future, because the clock stepped back: what was used is
   * kept. Tells whether it wrote.
   */
  repair(own: R, s: Float64Array, i: number, nowUs: number): boolean

  /** Whole permits that are in use, rounded up. */
  used(own: R, s: Float64Array, i: number, nowUs: number): number

  /**
   * How long until at most `room` permits are in use, if nothing else happened: 0 when that is so
   * now. Where callers stand in line, `place` is the caller's; without it, or with 0, it has none.
   */
  untilUs(own: R, s: Float64Array, i: number, nowUs: number, room: number, place?: number): number

  /** How long until the key is idle, as if never used. */
  resetUs(own: R, s: Float64Array, i: number, nowUs: number): number

  /** If bookable: how long until a caller that is charged `cost` now, under `to`, may act. */
  dueUs?(own: R, to: R, s: Float64Array, i: number, nowUs: number, cost: number): number

  /**
   * Charges `cost`, whether it fits or not: the caller has asked and decided. The state is written
   * under `to` from now on. Answers how much later than now the charge was entered, to give it back
   * by: 0, unless the state is ahead of the clock.
   */
  charge(own: R, to: R, s: Float64Array, i: number, nowUs: number, cost: number): number

  /**
   * For what knows when it was charged: charges `cost` as of `ofUs`, as if it had been charged
   * then. Tells whether it wrote: what was charged then may no longer count. Without it, what is
   * charged later is charged now.
   */
  chargeAt?(own: R, to: R, s: Float64Array, i: number, nowUs: number, cost: number, ofUs: number): boolean

  /**
   * Gives `cost` back, never above idle. `ofUs` (or -1) is when it was entered. With `booked` it
   * cancels a reservation before its time: its cost minus what was reserved after it, and nothing
   * if the state was written at another pace since. Answers how many whole permits were given back,
   * -1 if nothing was written.
   */
  giveBack(own: R, s: Float64Array, i: number, nowUs: number, cost: number, ofUs: number, booked: Booked<R> | undefined): number

  /**
   * If bookable: gives back no more than would still be in use of a charge, had no call come after
   * it. `left`: the rule it was made under, and when it would have drained. Answers as `giveBack`
   * does.
   */
  giveRest?(own: R, s: Float64Array, i: number, nowUs: number, cost: number, left: Booked<R>): number

  /**
   * If released: lets leases run anew from now, by the lease of `to`. Answers how many of these
   * tokens are still held. With a cost, one that a lost state gave out is written anew.
   */
  renew?(own: R, to: R, s: Float64Array, i: number, nowUs: number, tokens: Float64Array, cost: number): number

  /**
   * If released: keeps the place of a caller that has to wait, or gives it one behind all others.
   * Answers the place, -1 if the line is full.
   */
  stand?(own: R, to: R, s: Float64Array, i: number, nowUs: number, place: number): number

  /** If released: whether a state has an entry under a token. */
  hasToken?(s: Float64Array, i: number, token: number): boolean

  /**
   * If bookable: when the holder of the last `cost` permits of a ticket may act; in the past, if it
   * never had to wait.
   */
  actUs?(rule: R, ticket: Float64Array, cost: number): number

  /**
   * If bookable: the ticket that a reservation of `cost` permits less would have been answered
   * with.
   */
  shorten?(rule: R, ticket: Float64Array, cost: number): Float64Array

  /** The state by the names that people use, for `inspect`. */
  fields(own: R, s: Float64Array, i: number): StateFields
}

/** The numbers of a state, by name: all are whole. */
export type StateFields = Readonly<Record<string, number>>

/**
 * A charge to be given back: the rule it was made under, and the state it left behind; of one that
 * is not cancelled, only its first word.
 */
export interface Booked<R extends Rule = Rule> {
  readonly rule: R
  readonly words: Float64Array
}

/**
 * A limit made ready to compute with: validated, reduced to lowest terms, with the products it
 * needs computed once. Immutable.
 */
export interface Rule {
  readonly algorithm: Algorithm
  /** The permits that an idle key admits at once. A larger cost is impossible. */
  readonly capacity: number
  /**
   * The whole numbers that define the rule; for one algorithm always equally many. The first is the
   * capacity.
   */
  readonly figures: readonly number[]
  /** The figures as text: equal names mean equal behaviour. */
  readonly numbers: string
  /**
   * One window: how long a full charge is felt, and the longest step back of the clock that is
   * waited out.
   */
  readonly windowUs: number
  /** How many doubles a state may take. */
  readonly words: number
  /** So many zeros are the state of a key that has used nothing. */
  readonly freshWords: number
  /**
   * Whether what is charged never comes back by itself. Then only the memory of one process may
   * hold it.
   */
  readonly endless?: boolean
  /**
   * If released: how many entries a state has room for, each of one holder or of one caller in
   * line.
   */
  readonly places?: number
}

/**
 * How the states of an algorithm are written as bytes (codec.ts). A change of what its figures or
 * its words mean takes the next free number (formats.ts).
 */
export interface Format {
  /** The byte that names it. */
  readonly format: number
  readonly algorithm: Algorithm
  /** How many figures its rules have. */
  readonly figures: number
}

/**
 * The result of a factory such as `gcra()`: plain data for people and JSON, with its algorithm
 * under a symbol for the machine.
 */
export interface Limit {
  readonly type: string
  readonly [RULE]: Rule
}

/** A limit that is in use until it is released: decisions by it are permits. */
export interface ReleasedLimit extends Limit {
  readonly [RULE]: Rule & { readonly algorithm: { readonly untilReleased: true } }
}

/** A limit carries its own rule, so that importing one algorithm bundles one. */
export const RULE: unique symbol = Symbol.for('sluice.rule')

/** Attaches the rule where neither JSON nor a spread in a log shows it. */
export function limitOf<Data extends { readonly type: string }>(data: Data, rule: Rule): Readonly<Data> & Limit {
  const copy = Object.fromEntries(Object.entries(data).map(([name, value]) => [name, frozen(value)]))
  return Object.freeze(Object.defineProperty(copy, RULE, { value: rule })) as Readonly<Data> & Limit
}

/** A frozen copy: the rule was made from it. */
function frozen(value: unknown): unknown {
  return typeof value === 'object' && value !== null ? Object.freeze({ ...value }) : value
}

/** The figures that a text names. */
export function figuresNamed(numbers: string): number[] {
  return numbers.split(' ').map(Number)
}
