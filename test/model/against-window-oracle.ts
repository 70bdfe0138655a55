/**
 * Holds every step of a trace of a window against its oracle: the outcome, every figure by what it
 * means, the state, and what the window promises of its admissions. Plain comparisons and one
 * message when something is wrong, because this runs millions of times.
 */

import type { Verdict } from '../../src/algorithms/decide.ts'
import type { Charge } from '../../src/stores/settlement.ts'
import type { Part } from '../../src/stores/store.ts'
import {
  type Admission,
  heldBy,
  slotOf,
  type WindowKind,
  type WindowNumbers,
  WindowOracle,
  type WindowState,
} from '../../src/testing/window-oracle.ts'
import type { Coverage } from './against-oracle.ts'
import { Fork, textOf } from './fork.ts'
import { type HeldState, PureStore } from './pure-store.ts'
import { limitName, runTrace, type Taken } from './run-trace.ts'
import { type Call, LATEST_US, SEED } from './trace.ts'
import { type WindowTrace, type WindowTraceNumbers, windowScopes, windowTrace } from './window-trace.ts'

const LIMITER = 'model'
const KEY = 'k'

/** What must make up at least one step in twenty each. */
export const HARD_WINDOW_CASES: readonly string[] = [
  'limited',
  'at retry',
  'just before retry',
  'step back',
  'idle gap',
  'another window',
  'another limit',
  'a limit of 0',
]

const WAYS = ['up', 'down']

/** What must be met often: at least in one step of a thousand each. */
export const RARE_WINDOW_CASES: readonly string[] = [
  'refund that gave something back',
  'charge that is allowed',
  'charge that is limited',
  'charge that is impossible',
  ...WAYS.flatMap((way) => [0, 1, 2, 3].map((windows) => `settled ${way}, ${windows} windows later`)),
  ...WAYS.flatMap((way) => [`settled ${way} after another window`, `settled ${way} after a step back`]),
  'settled up into debt',
  'settled up on a limit of 0',
  'settled down in time',
  'settled down too late',
]

/** The same for windows that begin with the first call. */
export const RARE_FIRST_CASES: readonly string[] = [
  'from the first call: re-dated',
  ...WAYS.flatMap((way) => [
    `from the first call: settled ${way} while a later window runs`,
    `from the first call: settled ${way} after a step back`,
  ]),
]

/** Of a log: what is beyond its limit keeps its times. */
export const RARE_LOG_CASES: readonly string[] = ['more times than the limit']

/** What must be met at all: there is room for part of a charge, or for none of it. */
export const BOUND_CASES: readonly string[] = ['charged', 'settled up'].flatMap((what) => [
  `${what} beyond the bound`,
  `${what} at the bound`,
])

export function compareWindowTraces(count: number, kind: WindowKind, coverage: Coverage): void {
  for (let k = 0; k < count; k++) compareWindowTrace(SEED + k, kind, coverage)
}

/** Runs one trace on the least of stores beside the oracle. Throws at the first difference. */
export function compareWindowTrace(seed: number, kind: WindowKind, coverage: Coverage): void {
  const trace = windowTrace(kind, seed)
  const store = new PureStore()
  const comparison = new Comparison(kind, trace, store, coverage)
  runTrace(trace, store, windowScopes(trace, LIMITER), KEY, (taken) => comparison.check(taken))
}

class Comparison {
  readonly #kind: WindowKind
  readonly #trace: WindowTrace
  readonly #store: PureStore
  readonly #coverage: Coverage
  readonly #oracle: WindowOracle
  readonly #calls: Call[] = []
  /** By what numbers was charged what may be settled. */
  readonly #charges = new Map<Charge, WindowNumbers>()
  #held: HeldState | undefined

  constructor(kind: WindowKind, trace: WindowTrace, store: PureStore, coverage: Coverage) {
    this.#kind = kind
    this.#trace = trace
    this.#store = store
    this.#coverage = coverage
    this.#oracle = new WindowOracle(kind, this.#numbersAt(0))
  }

  check({ call, step, verdicts, charges }: Taken): void {
    const [verdict] = verdicts as [Verdict]
    const [part] = step.parts as [Part]
    this.#calls.push(call)
    this.#oracle.changeNumbers(this.#numbersAt(call.numbers))
    this.#countBefore(call)
    if (call.op === 'forget') this.#oracle.forget()
    else if (step.op === 'give') this.#checkRefund(call, part, verdict)
    else if (step.op === 'charge') this.#checkCharge(call, part, verdict)
    else if (step.op === 'settle') this.#checkSettlement(call, part, verdict, (charges as readonly [Charge])[0])
    else this.#checkDecision(call, part, verdict)
    if (step.op === 'take' && charges !== undefined) this.#charges.set(charges[0] as Charge, this.#oracle.numbers)
    if (call.op !== 'forget') this.#checkAfterwards(verdict, call.nowUs)
    this.#held = this.#store.held(LIMITER, limitName(0), KEY)
    this.#checkState()
    if ((call.op === 'take' || call.op === 'ask') && verdict?.outcome === 'limited') this.#checkRetry(call, part, verdict.retryUs)
  }

  #numbersAt(index: number): WindowTraceNumbers {
    return (this.#trace.palette[index] as readonly WindowTraceNumbers[])[0] as WindowTraceNumbers
  }

  #checkDecision(call: Call, { cost }: Part, verdict: Verdict): void {
    const { nowUs } = call
    const outcome = this.#oracle.ask(nowUs, cost)
    this.#expect(verdict.outcome === outcome, () => `outcome is ${verdict.outcome}, the oracle says ${outcome}`)
    this.#expect(verdict.atUs === nowUs, () => `atUs is ${verdict.atUs}`)
    this.#expect(verdict.delayUs === 0, () => `delayUs is ${verdict.delayUs}: a window delays nobody`)
    this.#checkRetryFigure(verdict, nowUs, cost)
    this.#countDecision(call, outcome)
    const charged = call.op === 'take' && outcome === 'allowed' && cost > 0
    if (charged) this.#oracle.take(nowUs, cost)
    const enteredUs = charged ? (this.#oracle.state?.atUs as number) : nowUs
    this.#expect(verdict.enteredUs === enteredUs, () => `enteredUs is ${verdict.enteredUs}, the oracle says ${enteredUs}`)
    if (charged) this.#checkPromise()
  }

  #checkRetryFigure({ outcome, retryUs }: Verdict, nowUs: number, cost: number): void {
    if (outcome !== 'limited') {
      this.#expect(retryUs === (outcome === 'allowed' ? 0 : Number.POSITIVE_INFINITY), () => `${outcome} with retryUs ${retryUs}`)
      return
    }
    this.#expect(Number.isSafeInteger(retryUs) && retryUs > 0, () => `limited with retryUs ${retryUs}`)
    this.#expect(this.#oracle.hasRoom(nowUs + retryUs, cost), () => `retryUs ${retryUs} is too short`)
    this.#expect(!this.#oracle.hasRoom(nowUs + retryUs - 1, cost), () => `retryUs ${retryUs} is too long`)
  }

  /**
   * What the limit says of any stretch of time, looked up in the list of all admissions under like
   * numbers: those of a stretch that ends with the latest are no more than the limit.
   */
  #checkPromise(): void {
    const { history, numbers } = this.#oracle
    const latest = history.at(-1) as Admission
    const together = heldBy(history.filter((admission) => IN_ONE_STRETCH[this.#kind](numbers, latest.atUs, admission.atUs)))
    this.#expect(together <= numbers.limit, () => `${together} are admitted together, the limit is ${numbers.limit}`)
  }

  #checkRefund({ nowUs }: Call, { cost }: Part, verdict: Verdict): void {
    const given = this.#oracle.give(nowUs, cost)
    if (given > 0) this.#coverage.add('refund that gave something back')
    this.#checkChange(verdict, given > 0 || cost === 0, given)
  }

  /** What is given back or settled is `limited` where nothing changes. */
  #checkChange({ outcome, retryUs, delayUs, given }: Verdict, isChanged: boolean, permits: number): void {
    const expected = isChanged ? 'allowed' : 'limited'
    const isSame = outcome === expected && retryUs === 0 && delayUs === 0 && given === permits
    this.#expect(isSame, () => `it answers ${outcome}, ${retryUs}, ${delayUs}, ${given} given, the oracle says ${expected}, ${permits}`)
  }

  #checkCharge({ nowUs }: Call, { cost }: Part, verdict: Verdict): void {
    const oracle = this.#oracle
    oracle.touch(nowUs)
    const landed = oracle.landed(nowUs, cost)
    this.#countBound('charged', cost, landed)
    const { outcome, delayUs, enteredUs } = verdict
    const expected = oracle.charge(nowUs, cost)
    this.#coverage.add(`charge that is ${expected}`)
    this.#expect(outcome === expected && delayUs === 0, () => `a charge answers ${outcome}, ${delayUs}, the oracle says ${expected}`)
    const expectedUs = landed > 0 ? oracle.state?.atUs : nowUs
    this.#expect(enteredUs === expectedUs, () => `enteredUs is ${enteredUs}, the oracle says ${expectedUs}`)
    // Debt limits until one permit is free.
    this.#checkRetryFigure(verdict, nowUs, 1)
  }

  #checkSettlement({ nowUs }: Call, { cost }: Part, verdict: Verdict, charge: Charge): void {
    const oracle = this.#oracle
    oracle.touch(nowUs)
    const landed = oracle.landed(nowUs, cost)
    this.#countLateness(nowUs, cost, charge)
    const permits = oracle.settle(nowUs, cost, charge.enteredUs)
    this.#countSettlement(nowUs, cost, landed, permits > 0)
    this.#checkChange(verdict, permits > 0 || cost === 0, cost < 0 ? permits : 0)
  }

  /** What the key looks like after the decision. */
  #checkAfterwards({ remaining, resetUs }: Verdict, nowUs: number): void {
    const oracle = this.#oracle
    this.#expect(Number.isSafeInteger(remaining) && remaining >= 0, () => `remaining ${remaining}`)
    this.#expect(remaining === 0 || oracle.hasRoom(nowUs, remaining), () => `remaining ${remaining} is too much`)
    this.#expect(!oracle.hasRoom(nowUs, remaining + 1), () => `remaining ${remaining} is too little`)
    this.#expect(Number.isSafeInteger(resetUs) && resetUs >= 0, () => `resetUs ${resetUs}`)
    this.#expect(oracle.isIdleAt(nowUs + resetUs), () => `resetUs ${resetUs} is too short`)
    this.#expect(resetUs === 0 || !oracle.isIdleAt(nowUs + resetUs - 1), () => `resetUs ${resetUs} is too long`)
  }

  /** The state that the store holds says what the oracle's list does. */
  #checkState(): void {
    const { state } = this.#oracle
    if (this.#kind === 'slidingLog' && state !== undefined && timesOf(state) > state.numbers.limit)
      this.#coverage.add('more times than the limit')
    const expected = state && EXPECTED_STATE[this.#kind](state)
    const held = this.#held && READ_STATE[this.#kind](this.#held)
    this.#expect(held === expected, () => `the store holds ${held} (${this.#held && textOf(this.#held)}), the oracle ${expected}`)
  }

  /**
   * A refused call really is made again, on copies of the state: when it was told to come, and one
   * microsecond before.
   */
  #checkRetry({ nowUs }: Call, part: Part, retryUs: number): void {
    this.#expect(this.#forkAllows(nowUs + retryUs, part), () => `called again after ${retryUs}, it is not allowed`)
    this.#expect(!this.#forkAllows(nowUs + retryUs - 1, part), () => `called before ${retryUs}, it is allowed`)
  }

  #forkAllows(nowUs: number, { rule, cost }: Part): boolean {
    const fork = new Fork([{ rule, held: this.#held }])
    // Beyond the end of time nothing may be charged, but it can still be asked.
    return fork.step(nowUs > LATEST_US ? 'ask' : 'take', nowUs, [cost])
  }

  #countBefore({ op, moment, nowUs }: Call): void {
    const coverage = this.#coverage
    const oracle = this.#oracle
    coverage.steps += 1
    if (moment === 'at retry' || moment === 'just before retry') coverage.add(moment)
    if (op !== 'forget' && oracle.numbers.limit === 0) coverage.add('a limit of 0')
    if (oracle.state === undefined || op === 'forget') return
    if (moment === 'step back') coverage.add('step back')
    if (oracle.state.atUs - nowUs > oracle.windowUs) this.#add('re-dated')
    else if (oracle.state.atUs > nowUs) coverage.add('time stands still')
    if (oracle.isOfAnotherWindow) coverage.add('another window')
    if (oracle.state.numbers.limit !== oracle.numbers.limit) coverage.add('another limit')
    if (moment === 'idle gap' && oracle.isIdleAt(nowUs)) coverage.add('idle gap')
  }

  #countBound(what: string, cost: number, landed: number): void {
    if (cost > landed) this.#coverage.add(landed > 0 ? `${what} beyond the bound` : `${what} at the bound`)
  }

  #countLateness(nowUs: number, cost: number, charge: Charge): void {
    if (cost === 0) return
    const what = `settled ${cost > 0 ? 'up' : 'down'}`
    const { state } = this.#oracle
    const by = this.#charges.get(charge) as WindowNumbers
    const lateUs = nowUs - charge.enteredUs
    this.#add(`${what}, ${Math.min(3, Math.max(0, Math.floor(lateUs / by.lengthUs)))} windows later`)
    if (lateUs < 0) this.#add(`${what} after a step back`)
    if (state === undefined) return
    const { numbers, running } = state
    if (numbers.lengthUs !== by.lengthUs || numbers.slots !== by.slots || numbers.anchor !== by.anchor)
      this.#add(`${what} after another window`)
    if (charge.enteredUs < running.startUs && nowUs < running.endUs) this.#add(`${what} while a later window runs`)
  }

  #countSettlement(nowUs: number, cost: number, landed: number, isChanged: boolean): void {
    const oracle = this.#oracle
    if (cost < 0) this.#coverage.add(isChanged ? 'settled down in time' : 'settled down too late')
    if (cost <= 0) return
    this.#countBound('settled up', cost, landed)
    if (!oracle.hasRoom(nowUs, 0)) this.#coverage.add(oracle.numbers.limit > 0 ? 'settled up into debt' : 'settled up on a limit of 0')
  }

  /** Windows that begin with the first call are also counted by themselves. */
  #add(what: string): void {
    this.#coverage.add(what)
    if (this.#kind === 'fixedWindow' && this.#oracle.numbers.anchor === 'first') this.#coverage.add(`from the first call: ${what}`)
  }

  #countDecision({ moment }: Call, outcome: Verdict['outcome']): void {
    if (moment === 'at retry') this.#expect(outcome === 'allowed', () => 'refused although it came when it was told to')
    if (moment === 'just before retry') this.#expect(outcome === 'limited', () => 'allowed although it came too early')
    this.#coverage.add(outcome)
  }

  #expect(fact: boolean, otherwise: () => string): void {
    if (fact) return
    throw new Error(
      [
        `${otherwise()}`,
        `in trace ${this.#trace.seed} (${this.#kind}), call ${this.#calls.length}; numbers by index:`,
        ...this.#trace.palette.map(([numbers]) => `  ${JSON.stringify(numbers)}`),
        'the last calls:',
        ...this.#calls.slice(-8).map((call) => `  ${JSON.stringify(call)}`),
      ].join('\n'),
    )
  }
}

/**
 * Whether an admission lies in the same stretch, the one that ends with `latestUs`, of which the
 * limit promises something.
 */
const IN_ONE_STRETCH: Readonly<Record<WindowKind, (numbers: WindowNumbers, latestUs: number, atUs: number) => boolean>> = {
  fixedWindow: ({ anchor, lengthUs }, latestUs, atUs) =>
    anchor === 'first' ? latestUs === atUs : Math.floor((latestUs - anchor) / lengthUs) === Math.floor((atUs - anchor) / lengthUs),
  // At most `limit` in any window - window / slots, both ends included.
  slidingWindow: ({ lengthUs, slots }, latestUs, atUs) => latestUs - atUs <= lengthUs - lengthUs / slots,
  slidingLog: ({ lengthUs }, latestUs, atUs) => latestUs - atUs < lengthUs,
}

/** At how many different times it was charged what is in use. */
function timesOf({ admissions }: WindowState): number {
  return new Set(admissions.map(({ atUs }) => atUs)).size
}

/** The oracle's state as text. */
const EXPECTED_STATE: Readonly<Record<WindowKind, (state: WindowState) => string>> = {
  fixedWindow({ atUs, numbers: { limit, lengthUs, anchor }, admissions, running: { startUs, endUs } }) {
    const figures = `${limit} ${lengthUs} ${anchor === 'first' ? '1 0' : `0 ${anchor}`}`
    return `at ${atUs} under ${figures}: ${heldBy(admissions)} from ${startUs} to ${endUs}`
  },
  slidingWindow({ atUs, numbers, admissions }) {
    const { limit, lengthUs, slots } = numbers
    return `at ${atUs} under ${limit} ${lengthUs} ${slots}: ${summed(admissions, (time) => `${slotOf(numbers, time)}`)}`
  },
  slidingLog({ atUs, numbers: { limit, lengthUs }, admissions }) {
    return `at ${atUs} under ${limit} ${lengthUs}: ${summed(admissions, String)}`
  },
}

/** The same text from what a store holds. */
const READ_STATE: Readonly<Record<WindowKind, (held: HeldState) => string>> = {
  fixedWindow({ own, words }) {
    const { count, startUs, endUs, atUs } = own.algorithm.fields(own, words, 0)
    return `at ${atUs} under ${own.numbers}: ${count} from ${startUs} to ${endUs}`
  },
  slidingWindow: shownCounts,
  slidingLog: shownCounts,
}

/** Slots or times are named by their numbers, which objects keep in order up to 2^32 only. */
function shownCounts({ own, words }: HeldState): string {
  const { atUs, ...counts } = own.algorithm.fields(own, words, 0)
  const sorted = Object.entries(counts).sort(([a], [b]) => Number(a) - Number(b))
  return `at ${atUs} under ${own.numbers}: ${sorted.map(([name, count]) => `${name}=${count}`).join(' ')}`
}

/** `name=held` for admissions that go by the same name, in order. */
function summed(admissions: readonly Admission[], nameOf: (atUs: number) => string): string {
  const held = new Map<string, number>()
  for (const admission of admissions) {
    const name = nameOf(admission.atUs)
    held.set(name, (held.get(name) ?? 0) + admission.held)
  }
  return [...held].map(([name, count]) => `${name}=${count}`).join(' ')
}
