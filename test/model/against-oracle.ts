/**
 * Holds every step of a trace against the oracle: the outcome, every figure by what it means, and
 * the state to the last digit. Plain comparisons and one message when something is wrong, because
 * this runs millions of times.
 */

import type { Ticket, Verdict } from '../../src/algorithms/decide.ts'
import type { Charge } from '../../src/stores/settlement.ts'
import type { Part } from '../../src/stores/store.ts'
import { Oracle, type OracleCharge, type OracleKind, type OracleNumbers, type OracleState } from '../../src/testing/oracle.ts'
import { Fork, textOf } from './fork.ts'
import { type HeldState, PureStore } from './pure-store.ts'
import { limitName, runTrace, scopesOf, type Taken } from './run-trace.ts'
import { type Call, SEED, Trace } from './trace.ts'

const LATEST_US = 5_000_000_000_000_000
const LIMITER = 'model'
const KEY = 'k'

/** How many steps were of which kind. A run that never meets the hard cases proves nothing. */
export class Coverage {
  readonly counts = new Map<string, number>()
  steps = 0

  add(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1)
  }

  share(what: string): number {
    return (this.counts.get(what) ?? 0) / this.steps
  }

  table(title: string): string {
    const rows = [...this.counts].sort((a, b) => b[1] - a[1])
    const lines = rows.map(
      ([what, count]) => `  ${what.padEnd(34)}${String(count).padStart(10)}${((100 * count) / this.steps).toFixed(1).padStart(7)} %`,
    )
    return [`${title}: ${this.steps} steps`, ...lines].join('\n')
  }
}

/** What must make up at least one step in twenty each. */
export const HARD_CASES: readonly string[] = [
  'limited',
  'at retry',
  'just before retry',
  'step back',
  'idle gap',
  'another pace',
  'another capacity',
  '6 permits or more per period',
]

/** What must be met at all, often. */
export const RARE_CASES: readonly string[] = [
  'booked ahead',
  'give that gave something back',
  'cancel that gave something back',
  'granted reservation at another pace',
  'refused reservation at another pace',
  'charge that is limited',
  'charge that is allowed',
  'settled down',
  'settled up',
]

export function compareTraces(count: number, kinds: readonly OracleKind[], coverage: Coverage): void {
  for (let k = 0; k < count; k++) compareTrace(SEED + k, kinds, coverage)
}

/**
 * Runs one trace on the least of stores beside one oracle for each limit. Throws at the first
 * difference.
 */
export function compareTrace(seed: number, kinds: readonly OracleKind[], coverage: Coverage): void {
  const trace = new Trace(seed, kinds)
  const store = new PureStore()
  const comparison = new Comparison(trace, store, coverage)
  runTrace(trace, store, scopesOf(trace, LIMITER), KEY, (taken) => comparison.check(taken))
}

class Comparison {
  readonly #trace: Trace
  readonly #store: PureStore
  readonly #coverage: Coverage
  readonly #oracles: readonly Oracle[]
  /** The oracle's side of every reservation. */
  readonly #tickets = new WeakMap<Ticket, OracleState>()
  /** The oracle's side of every charge. */
  readonly #charges = new WeakMap<Charge, OracleCharge>()
  readonly #calls: Call[] = []

  constructor(trace: Trace, store: PureStore, coverage: Coverage) {
    const first = trace.palette[0] as readonly OracleNumbers[]
    this.#trace = trace
    this.#store = store
    this.#coverage = coverage
    this.#oracles = trace.kinds.map((kind, k) => new Oracle(kind, first[k] as OracleNumbers))
  }

  check(taken: Taken): void {
    const { call } = taken
    this.#calls.push(call)
    this.#changeNumbers(call)
    this.#countBefore(call)
    if (call.op === 'forget') {
      for (const oracle of this.#oracles) oracle.forget()
    } else if (call.op === 'give' || call.op === 'cancel') {
      this.#checkGivingBack(taken)
    } else if (call.op === 'charge') {
      this.#checkCharge(taken)
    } else if (call.op === 'settle') {
      this.#checkSettlement(taken)
    } else {
      this.#checkDecision(taken)
    }
    taken.limits.forEach((k, p) => {
      if (call.op !== 'forget') this.#checkAfterwards(this.#oracle(k), taken.verdicts[p] as Verdict, call.nowUs)
    })
    for (let k = 0; k < this.#oracles.length; k++) this.#checkState(k)
    if (call.op === 'take' || call.op === 'ask') this.#checkRetry(taken)
  }

  #changeNumbers({ numbers }: Call): void {
    const present = this.#trace.palette[numbers] as readonly OracleNumbers[]
    for (let k = 0; k < this.#oracles.length; k++) this.#oracle(k).changeNumbers(present[k] as OracleNumbers)
  }

  #checkDecision({ call, step, verdicts, charges = [] }: Taken): void {
    const { nowUs } = call
    let granted = true
    for (let k = 0; k < this.#oracles.length; k++) {
      const { cost } = step.parts[k] as Part
      const oracle = this.#oracle(k)
      const verdict = verdicts[k] as Verdict
      const outcome = oracle.ask(nowUs, cost, step.aheadUs)
      this.#expect(verdict.outcome === outcome, () => `outcome is ${verdict.outcome}, the oracle says ${outcome}`)
      if (outcome !== 'allowed') granted = false
      this.#expect(verdict.atUs === nowUs, () => `atUs is ${verdict.atUs}`)
      this.#checkRetryFigure(oracle, verdict, nowUs, cost, step.aheadUs)
      this.#checkDelayFigure(oracle, verdict, nowUs, cost, step.aheadUs >= 0 || this.#trace.kinds[k] === 'leakyBucket')
    }
    this.#countDecision(call, granted, verdicts)
    if (granted && call.op === 'take') this.#charge(call, step.parts, step.aheadUs, verdicts, charges)
    else {
      for (const { ticket, enteredUs } of verdicts) {
        this.#expect(ticket === undefined, () => 'there is a ticket although nothing was reserved')
        this.#expect(enteredUs === nowUs, () => `nothing was entered, but enteredUs is ${enteredUs}`)
      }
    }
  }

  /** All agree: every limit is charged. */
  #charge({ nowUs }: Call, parts: readonly Part[], aheadUs: number, verdicts: readonly Verdict[], charges: readonly Charge[]): void {
    for (let k = 0; k < parts.length; k++) {
      const { cost } = parts[k] as Part
      const { ticket, enteredUs } = verdicts[k] as Verdict
      this.#oracle(k).take(nowUs, cost, aheadUs)
      const expectedUs = cost === 0 ? nowUs : Number(this.#oracle(k).state?.atUs)
      this.#expect(enteredUs === expectedUs, () => `enteredUs is ${enteredUs}, the oracle wrote it at ${expectedUs}`)
      this.#expect((ticket !== undefined) === (aheadUs >= 0 && cost > 0), () => `ticket is ${ticket}`)
      this.#charges.set(charges[k] as Charge, this.#oracle(k).charged)
      if (ticket !== undefined) this.#tickets.set(ticket, this.#oracle(k).state as OracleState)
    }
  }

  #checkRetryFigure(oracle: Oracle, { outcome, retryUs }: Verdict, nowUs: number, cost: number, aheadUs: number): void {
    if (outcome !== 'limited') {
      this.#expect(retryUs === (outcome === 'allowed' ? 0 : Number.POSITIVE_INFINITY), () => `${outcome} with retryUs ${retryUs}`)
      return
    }
    this.#expect(Number.isSafeInteger(retryUs) && retryUs > 0, () => `limited with retryUs ${retryUs}`)
    this.#expect(oracle.fits(nowUs + retryUs, cost, aheadUs), () => `retryUs ${retryUs} is too short`)
    this.#expect(!oracle.fits(nowUs + retryUs - 1, cost, aheadUs), () => `retryUs ${retryUs} is too long`)
  }

  /**
   * A reservation, and what is poured into a leaky bucket, may act after the delay and no sooner.
   * The cost is not charged yet.
   */
  #checkDelayFigure(oracle: Oracle, { outcome, delayUs }: Verdict, nowUs: number, cost: number, mayWait: boolean): void {
    if (outcome !== 'allowed' || cost === 0 || !mayWait) {
      this.#expect(delayUs === 0, () => `${outcome} cost ${cost} with delayUs ${delayUs}`)
      return
    }
    this.#expect(Number.isSafeInteger(delayUs) && delayUs >= 0, () => `delayUs ${delayUs}`)
    this.#expect(oracle.mayAct(nowUs, cost, delayUs), () => `delayUs ${delayUs} is too short`)
    this.#expect(delayUs === 0 || !oracle.mayAct(nowUs, cost, delayUs - 1), () => `delayUs ${delayUs} is too long`)
  }

  #checkGivingBack({ call, step, limits, verdicts }: Taken): void {
    limits.forEach((k, p) => {
      const { cost, ticket } = step.parts[p] as Part
      const { outcome, retryUs, delayUs } = verdicts[p] as Verdict
      const oracle = this.#oracle(k)
      const isGiven =
        ticket === undefined
          ? oracle.give(call.nowUs, cost, step.ofUs)
          : oracle.cancel(call.nowUs, cost, this.#tickets.get(ticket) as OracleState)
      if (isGiven) this.#coverage.add(`${call.op} that gave something back`)
      const expected = isGiven || cost === 0 ? 'allowed' : 'limited'
      this.#expect(outcome === expected && retryUs === 0 && delayUs === 0, () => `giving back answers ${outcome}, ${retryUs}, ${delayUs}`)
    })
  }

  #checkCharge({ call: { nowUs }, step, limits, verdicts }: Taken): void {
    limits.forEach((k, p) => {
      const { cost } = step.parts[p] as Part
      const { outcome, retryUs, delayUs, enteredUs } = verdicts[p] as Verdict
      const oracle = this.#oracle(k)
      const expected = oracle.charge(nowUs, cost)
      this.#coverage.add(`charge that is ${expected}`)
      this.#expect(outcome === expected && delayUs === 0, () => `a charge answers ${outcome}, ${delayUs}, the oracle says ${expected}`)
      const isEntered = enteredUs === Number(oracle.state?.atUs) || (enteredUs === nowUs && (cost === 0 || outcome === 'limited'))
      this.#expect(isEntered, () => `enteredUs is ${enteredUs}, the oracle wrote it at ${oracle.state?.atUs}`)
      this.#expect(outcome === 'limited' ? retryUs > 0 : retryUs === 0, () => `${outcome} with retryUs ${retryUs}`)
      this.#expect(oracle.hasRoom(nowUs + retryUs, outcome === 'limited' ? 1 : 0), () => `retryUs ${retryUs} is too short`)
      this.#expect(outcome === 'allowed' || !oracle.hasRoom(nowUs + retryUs - 1, 1), () => `retryUs ${retryUs} is too long`)
    })
  }

  #checkSettlement({ call: { nowUs }, step, limits, verdicts, charges = [] }: Taken): void {
    limits.forEach((k, p) => {
      const { cost } = step.parts[p] as Part
      const { outcome, retryUs, delayUs } = verdicts[p] as Verdict
      const charge = this.#charges.get(charges[p] as Charge) as OracleCharge
      const isChanged = this.#oracle(k).settle(nowUs, cost, charge)
      if (isChanged) this.#coverage.add(`settled ${cost < 0 ? 'down' : 'up'}`)
      const expected = isChanged || cost === 0 ? 'allowed' : 'limited'
      this.#expect(outcome === expected && retryUs === 0 && delayUs === 0, () => `settling answers ${outcome}, ${retryUs}, ${delayUs}`)
    })
  }

  /** What the key looks like after the decision. */
  #checkAfterwards(oracle: Oracle, { remaining, resetUs }: Verdict, nowUs: number): void {
    this.#expect(Number.isSafeInteger(remaining) && remaining >= 0, () => `remaining ${remaining}`)
    this.#expect(remaining === 0 || oracle.hasRoom(nowUs, remaining), () => `remaining ${remaining} is too much`)
    this.#expect(!oracle.hasRoom(nowUs, remaining + 1), () => `remaining ${remaining} is too little`)
    this.#expect(Number.isSafeInteger(resetUs) && resetUs >= 0, () => `resetUs ${resetUs}`)
    this.#expect(oracle.isIdleAt(nowUs + resetUs), () => `resetUs ${resetUs} is too short`)
    this.#expect(resetUs === 0 || !oracle.isIdleAt(nowUs + resetUs - 1), () => `resetUs ${resetUs} is too long`)
  }

  /** The state that the store holds is the oracle's, as fractions. */
  #checkState(k: number): void {
    const held = this.#held(k)
    const { state } = this.#oracle(k)
    const isSame =
      held === undefined || state === undefined
        ? held === state
        : held.own.numbers === state.numbers.name && sameLevel(held.words, state) && sameDate(held.words, state)
    this.#expect(isSame, () => `the store holds ${held && textOf(held)}, the oracle ${shownState(state)}`)
  }

  #held(k: number): HeldState | undefined {
    return this.#store.held(LIMITER, limitName(k), KEY)
  }

  /**
   * A refused call really is made again, on copies of the states: when it was told to come, and one
   * microsecond before.
   */
  #checkRetry({ call, step, verdicts }: Taken): void {
    let retryUs = 0
    for (const verdict of verdicts) retryUs = Math.max(retryUs, verdict.retryUs)
    if (retryUs === 0 || retryUs === Number.POSITIVE_INFINITY) return
    this.#expect(this.#forkAllows(call.nowUs + retryUs, step.parts, step.aheadUs), () => `called again after ${retryUs}, it is not allowed`)
    this.#expect(!this.#forkAllows(call.nowUs + retryUs - 1, step.parts, step.aheadUs), () => `called before ${retryUs}, it is allowed`)
  }

  #forkAllows(nowUs: number, parts: readonly Part[], aheadUs: number): boolean {
    const fork = new Fork(parts.map(({ rule }, k) => ({ rule, held: this.#held(k) })))
    const costs = parts.map(({ cost }) => cost)
    // Beyond the end of time nothing may be charged, but it can still be asked.
    return fork.step(nowUs > LATEST_US ? 'ask' : 'take', nowUs, costs, aheadUs)
  }

  #countBefore({ op, moment, nowUs }: Call): void {
    const coverage = this.#coverage
    const [oracle] = this.#oracles as [Oracle]
    coverage.steps += 1
    if (moment === 'at retry' || moment === 'just before retry') coverage.add(moment)
    if (moment === 'step back' && oracle.state !== undefined) coverage.add('step back')
    if (moment === 'idle gap' && oracle.state !== undefined && oracle.isIdleAt(nowUs)) coverage.add('idle gap')
    if (op !== 'forget' && this.#oracles.some(({ isAtAnotherPace }) => isAtAnotherPace)) coverage.add('another pace')
    if (op !== 'forget' && this.#oracles.some(isOfAnotherCapacity)) coverage.add('another capacity')
    if (this.#oracles.some(({ numbers }) => numbers.permits >= 6n)) coverage.add('6 permits or more per period')
  }

  #countDecision(call: Call, granted: boolean, verdicts: readonly Verdict[]): void {
    const coverage = this.#coverage
    if (call.moment === 'at retry') this.#expect(granted, () => 'refused although it came when it was told to')
    if (call.moment === 'just before retry') this.#expect(!granted, () => 'allowed although it came too early')
    if (verdicts.some(({ outcome }) => outcome === 'limited')) coverage.add('limited')
    if (call.aheadUs >= 0 && this.#oracles.some(({ isAtAnotherPace }) => isAtAnotherPace)) {
      coverage.add(`${granted ? 'granted' : 'refused'} reservation at another pace`)
    }
    if (granted && call.op === 'take' && verdicts.some(({ delayUs }) => delayUs > 0)) coverage.add('booked ahead')
  }

  #oracle(k: number): Oracle {
    return this.#oracles[k] as Oracle
  }

  #expect(fact: boolean, otherwise: () => string): void {
    if (fact) return
    const { seed, kinds, palette } = this.#trace
    const last = this.#calls.slice(-8).map((call) => `  ${JSON.stringify(call)}`)
    throw new Error(
      [
        `${otherwise()}`,
        `in trace ${seed} (${kinds.join(', ')}), call ${this.#calls.length}; numbers by index:`,
        ...palette.map((numbers) => `  ${JSON.stringify(numbers)}`),
        'the last calls:',
        ...last,
      ].join('\n'),
    )
  }
}

/**
 * The TAT is when the level has leaked to zero: both sides in units of 1 / permits microseconds.
 */
function sameLevel([tatUs, part]: Float64Array, { units, atUs, numbers: { permits } }: OracleState): boolean {
  const tat = BigInt(tatUs as number) * permits + BigInt(part as number)
  return tat === atUs * permits + units && isPart(part, permits)
}

/** A state without a date is written as of -1. */
function sameDate(words: Float64Array, { atUs, isDated }: OracleState): boolean {
  return BigInt(words[2] as number) === (isDated ? atUs : -1n)
}

function isOfAnotherCapacity({ state, numbers }: Oracle): boolean {
  return state !== undefined && state.numbers.capacity !== numbers.capacity
}

function isPart(part: number | undefined, of: bigint): boolean {
  return part !== undefined && part >= 0 && BigInt(part) < of
}

function shownState(state: OracleState | undefined): string {
  if (state === undefined) return 'nothing'
  return `${state.units}/${state.numbers.periodUs} permits at ${state.atUs} under ${state.numbers.name}`
}
