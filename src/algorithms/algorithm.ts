/**
 * The contract of an algorithm.
 *
 * An algorithm is arithmetic on a few numbers. It reads no clock, does no I/O, and imports nothing
 * from the layers above: the time is an argument, and the store decides where the numbers lie.
 * Redis runs the same functions: a generator turns this TypeScript into Lua
 * (docs/decisions/lua-from-typescript.md), which is why it is written in a small part of the
 * language. An algorithm is at most thirteen functions, of which nine are in all of them.
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

  /** Whether a limit has such figures: those of a state that is read may be anything. */
  isLimit(figures: readonly number[]): boolean

  /**
   * Whether words that are whole numbers can be a state, where that says more. The script of Redis
   * has the same by hand (codec.lua, fast-path.lua).
   */
  isState?(own: R, s: Float64Array, i: number): boolean

  /** The rule that these figures stand for. */
  ruleOf(figures: readonly number[]): R

  /**
   * If bookable: the rule for a limiter that books so far ahead. `of` begins the message of a
   * refusal.
   */
  bookedAhead?(rule: R, aheadUs: number, of: string): R

  /**
   * For states that grow: how many doubles this one may need after one more charge. Without it,
   * always `words` of the rule.
   */
  neededWords?(s: Float64Array, i: number): number

  /**
   * For states that may keep more under a smaller capacity than `words` of its rule: how many
   * doubles this one takes.
   */
  heldWords?(s: Float64Array, i: number): number

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

  /**
   * If bookable: how long until all that is in use, once it is expressed at the pace of `to`, would
   * drain to `room` permits within `aheadUs`.
   */
  movesInUs?(own: R, to: R, s: Float64Array, i: number, nowUs: number, room: number, aheadUs: number): number

  /** How long until the key is idle, as if never used. */
  resetUs(own: R, s: Float64Array, i: number, nowUs: number): number

  /**
   * Charges `cost`, whether it fits or not: the caller has asked and decided. The state is written
   * under `to` from now on. Answers how much later than now the charge was entered, to give it back
   * by: 0, unless the state is ahead of the clock.
   */
  charge(own: R, to: R, s: Float64Array, i: number, nowUs: number, cost: number): number

  /**
   * Gives `cost` back, never above idle: as of now, or what still counts of one charge. That is
   * known to levels by `charge`, and to all else by `ofUs` (-1: none), when it was entered. Answers
   * how many whole permits were given back, -1 if nothing was written.
   */
  giveBack(own: R, s: Float64Array, i: number, nowUs: number, cost: number, ofUs: number, charge: Charged<R> | undefined): number

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

  /** The state by the names that people use, for `inspect`. */
  fields(own: R, s: Float64Array, i: number): StateFields
}

/** The numbers of a state, by name: all are whole. */
export type StateFields = Readonly<Record<string, number>>

/**
 * A charge of a level: the rule it was made under, and in `words` when it would have drained, had
 * no call come after it, when it was entered, when its caller may act, and how many permits of it
 * were given back already.
 */
export interface Charged<R extends Rule = Rule> {
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
  /** No more permits than this are in use: what is charged beyond it is dropped. */
  readonly mostUsed: number
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
  /**
   * The pace that was asked for, and the window by it, where the figures are a slower one
   * (kept-pace.ts): for what people are told.
   */
  readonly asked?: { readonly permits: number; readonly periodUs: number; readonly windowUs: number }
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
