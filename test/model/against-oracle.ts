/**
 * Holds every step of a trace against the oracle: the outcome, every figure by what it means, and
 * the state to the last digit. Plain comparisons and one message when something is wrong, because
 * this runs millions of times.
 */

import type { Verdict } from '../../src/algorithms/decide.ts'
import type { Charge } from '../../src/stores/settlement.ts'
import type { Part } from '../../src/stores/store.ts'
import { Oracle, type OracleCharge, type OracleKind, type OracleNumbers, type OracleState } from '../../src/testing/oracle.ts'
import { Fork, textOf } from './fork.ts'
import { type HeldState, PureStore } from './pure-store.ts'
import { limitName, runTrace, scopesOf, type Taken } from './run-trace.ts'
import { type Call, LATEST_US, SEED, Trace } from './trace.ts'

const LIMITER = 'model'
const KEY = 'k'
const MOST_UNITS = 2n ** 52n
/** Where a ticket says how many permits of a charge were given back already. */
const GIVEN = 3

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

/** What must be met at all, often: at least one step in a thousand each. */
export const RARE_CASES: readonly string[] = [
  'booked ahead',
  'gave something back',
  'granted reservation at another pace',
  'refused reservation at another pace',
  'charge that is limited',
  'charge that is allowed',
  'debt at its bound',
  'capacity 0',
  'charge that is impossible',
  'time stands still in use',
  're-dated in use',
  'cancelled before its time',
  'cancelled after its time',
  'settled down',
  'settled down a window late',
  'settled down, which gave something back',
  'settled down to within a microsecond',
  'settled down after another pace',
  'settled down again',
  'settled up',
  'settled up a window late',
  'settled up after another pace',
]

export function compareTraces(count: number, kinds: readonly OracleKind[], coverage: Coverage, firstSeed = SEED): void {
  for (let k = 0; k < count; k++) compareTrace(firstSeed + k, kinds, coverage)
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
    } else if (call.op === 'give') {
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
      const isDelayed = step.aheadUs >= 0 ? outcome !== 'impossible' : outcome === 'allowed' && this.#trace.kinds[k] === 'leakyBucket'
      this.#checkDelayFigure(oracle, verdict, nowUs, cost, isDelayed)
    }
    this.#countDecision(call, granted, verdicts)
    if (granted && call.op === 'take') this.#charge(call, step.parts, step.aheadUs, verdicts, charges)
    else for (const { enteredUs } of verdicts) this.#checkEntered(enteredUs, nowUs)
  }

  /** All agree: every limit is charged. */
  #charge({ nowUs }: Call, parts: readonly Part[], aheadUs: number, verdicts: readonly Verdict[], charges: readonly Charge[]): void {
    for (let k = 0; k < parts.length; k++) {
      const { cost } = parts[k] as Part
      const { enteredUs, delayUs } = verdicts[k] as Verdict
      const oracle = this.#oracle(k)
      oracle.take(nowUs, cost, aheadUs)
      this.#checkEntered(enteredUs, cost === 0 ? nowUs : Number(oracle.state?.atUs))
      this.#charges.set(charges[k] as Charge, oracle.charged(nowUs, delayUs))
    }
  }

  #checkEntered(enteredUs: number, expectedUs: number): void {
    this.#expect(enteredUs === expectedUs, () => `enteredUs is ${enteredUs}, the oracle says ${expectedUs}`)
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
   * A reservation, also one that is refused, and what is poured into a leaky bucket, may act after
   * the delay and no sooner. The cost is not charged yet.
   */
  #checkDelayFigure(oracle: Oracle, { outcome, delayUs }: Verdict, nowUs: number, cost: number, isDelayed: boolean): void {
    if (cost === 0 || !isDelayed) {
      this.#expect(delayUs === 0, () => `${outcome} cost ${cost} with delayUs ${delayUs}`)
      return
    }
    this.#expect(Number.isSafeInteger(delayUs) && delayUs >= 0, () => `delayUs ${delayUs}`)
    this.#expect(oracle.mayAct(nowUs, cost, delayUs), () => `delayUs ${delayUs} is too short`)
    this.#expect(delayUs === 0 || !oracle.mayAct(nowUs, cost, delayUs - 1), () => `delayUs ${delayUs} is too long`)
  }

  #checkGivingBack({ call, step, limits, verdicts }: Taken): void {
    limits.forEach((k, p) => {
      const { cost } = step.parts[p] as Part
      const isGiven = this.#oracle(k).give(call.nowUs, cost)
      if (isGiven) this.#coverage.add('gave something back')
      this.#checkWhetherChanged(verdicts[p] as Verdict, isGiven || cost === 0)
    })
  }

  #checkWhetherChanged({ outcome, retryUs, delayUs }: Verdict, isChanged: boolean): void {
    const expected = isChanged ? 'allowed' : 'limited'
    this.#expect(outcome === expected && retryUs === 0 && delayUs === 0, () => `it answers ${outcome}, ${retryUs}, ${delayUs}`)
  }

  #checkCharge({ call: { nowUs }, step, limits, verdicts }: Taken): void {
    limits.forEach((k, p) => {
      const { cost } = step.parts[p] as Part
      const { outcome, retryUs, delayUs, enteredUs } = verdicts[p] as Verdict
      const oracle = this.#oracle(k)
      oracle.touch(nowUs)
      const before = oracle.state
      const expected = oracle.charge(nowUs, cost)
      this.#coverage.add(`charge that is ${expected}`)
      if (oracle.levelAt(nowUs) > MOST_UNITS - 2n * oracle.numbers.periodUs) this.#coverage.add('debt at its bound')
      this.#expect(outcome === expected && delayUs === 0, () => `a charge answers ${outcome}, ${delayUs}, the oracle says ${expected}`)
      this.#checkEntered(enteredUs, oracle.state === before ? nowUs : Number(oracle.state?.atUs))
      if (outcome !== 'limited') {
        this.#expect(retryUs === (outcome === 'allowed' ? 0 : Number.POSITIVE_INFINITY), () => `${outcome} with retryUs ${retryUs}`)
        return
      }
      this.#expect(retryUs > 0 && oracle.hasRoom(nowUs + retryUs, 1), () => `retryUs ${retryUs} is too short`)
      this.#expect(!oracle.hasRoom(nowUs + retryUs - 1, 1), () => `retryUs ${retryUs} is too long`)
    })
  }

  #checkSettlement({ call, step, limits, verdicts, charges = [] }: Taken): void {
    limits.forEach((k, p) => {
      const { cost, ticket } = step.parts[p] as Part
      const verdict = verdicts[p] as Verdict
      const charge = { ...(this.#charges.get(charges[p] as Charge) as OracleCharge), given: ticket?.words[GIVEN] as number }
      this.#oracle(k).touch(call.nowUs)
      this.#countSettlement(call, cost, k, charge)
      const isChanged = cost < 0 ? this.#settledDown(call.nowUs, -cost, k, charge) : this.#oracle(k).settleUp(call.nowUs, cost)
      this.#checkWhetherChanged(verdict, isChanged || cost === 0)
    })
  }

  /** The oracle says from how much to how much may be given back, and goes on from what was. */
  #settledDown(nowUs: number, permits: number, k: number, charge: OracleCharge): boolean {
    const oracle = this.#oracle(k)
    const { least, most } = oracle.settleDown(nowUs, permits, charge)
    const held = this.#held(k)
    if (oracle.state === undefined || held === undefined) return false
    const given = oracle.levelAt(nowUs) - levelOf(held, oracle.state.numbers.permits, nowUs)
    if (least < most) this.#coverage.add('settled down to within a microsecond')
    if (given > 0n) this.#coverage.add('settled down, which gave something back')
    this.#expect(given >= least && given <= most, () => `gives back ${given} units, the oracle says from ${least} to ${most}`)
    return oracle.lower(nowUs, given)
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
    const isSame = held === undefined || state === undefined ? held === state : sameState(held, state)
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
    if (op !== 'forget' && oracle.state !== undefined && oracle.levelAt(nowUs) > 0n) this.#countClock(oracle.state, BigInt(nowUs))
    if (moment === 'idle gap' && oracle.state !== undefined && oracle.isIdleAt(nowUs)) coverage.add('idle gap')
    if (op !== 'forget' && this.#oracles.some(({ isAtAnotherPace }) => isAtAnotherPace)) coverage.add('another pace')
    if (op !== 'forget' && this.#oracles.some(isOfAnotherCapacity)) coverage.add('another capacity')
    if (this.#oracles.some(({ numbers }) => numbers.permits >= 6n)) coverage.add('6 permits or more per period')
    if (this.#oracles.some(({ numbers }) => numbers.capacity === 0n)) coverage.add('capacity 0')
  }

  #countClock({ atUs, numbers }: OracleState, nowUs: bigint): void {
    if (nowUs < atUs) this.#coverage.add(atUs - nowUs > numbers.windowUs ? 're-dated in use' : 'time stands still in use')
  }

  #countSettlement({ nowUs, costs }: Call, difference: number, k: number, { left, dueUs, given }: OracleCharge): void {
    const { state } = this.#oracle(k)
    if (difference === 0 || state === undefined || this.#oracle(k).levelAt(nowUs) === 0n) return
    const settled = `settled ${difference < 0 ? 'down' : 'up'}`
    const { permits, periodUs, windowUs } = left.numbers
    const thenUs = state.atUs > BigInt(nowUs) ? state.atUs : BigInt(nowUs)
    this.#coverage.add(settled)
    if (difference < 0 && given > 0) this.#coverage.add('settled down again')
    if (thenUs - left.atUs >= windowUs) this.#coverage.add(`${settled} a window late`)
    if (state.numbers.permits !== permits || state.numbers.periodUs !== periodUs) this.#coverage.add(`${settled} after another pace`)
    if (costs[k] === 0 && difference < 0 && dueUs > left.atUs)
      this.#coverage.add(`cancelled ${thenUs < dueUs ? 'before' : 'after'} its time`)
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

/** The TAT is when the level has leaked to zero. */
function levelOf({ words: [tatUs, part, atUs] }: HeldState, permits: bigint, nowUs: number): bigint {
  const units = (BigInt(tatUs as number) - BigInt(Math.max(atUs as number, nowUs))) * permits + BigInt(part as number)
  return units > 0n ? units : 0n
}

function sameState(held: HeldState, { units, atUs, numbers: { name, permits } }: OracleState): boolean {
  const [, part, heldAtUs] = held.words
  const isSameLevel = levelOf(held, permits, Number(atUs)) === units && isPart(part, permits)
  return held.own.numbers === name && BigInt(heldAtUs as number) === atUs && isSameLevel
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
