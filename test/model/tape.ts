/**
 * A trace written down as it ran on the least of stores, so that others can be played the same tape
 * and asked the same questions.
 */

import type { StateFields } from '../../src/algorithms/algorithm.ts'
import type { Verdict } from '../../src/algorithms/decide.ts'
import { type Part, Step } from '../../src/stores/step.ts'
import type { OracleKind } from '../../src/testing/oracle.ts'
import { type HeldState, PureStore } from './pure-store.ts'
import { runTrace, scopesOf, type TraceScopes } from './run-trace.ts'
import { type Call, Trace, type TraceOptions } from './trace.ts'

/** One step, what it was answered, and what was held afterwards for each limit of the scope. */
export interface Recorded {
  readonly call: Call
  readonly step: Step
  readonly verdicts: readonly Verdict[]
  readonly held: readonly ShownState[]
}

/**
 * A state as text: field by field in one order, and the numbers it is written under; undefined for
 * none.
 */
export interface ShownState {
  readonly fields: string | undefined
  readonly numbers: string | undefined
  /** Whether the key is idle, so that a store may have forgotten the state. */
  readonly isIdle?: boolean
}

export function record(seed: number, kinds: readonly OracleKind[], limiter: string, key: string, options: TraceOptions = {}): Recorded[] {
  const trace = new Trace(seed, kinds, options)
  return recordTrace(trace, scopesOf(trace, limiter), key)
}

export function recordTrace(trace: Pick<Trace, 'next'>, scopes: TraceScopes, key: string): Recorded[] {
  const store = new PureStore()
  const tape: Recorded[] = []
  runTrace(trace, store, scopes, key, ({ call, step, verdicts }) => {
    const held = step.scope.limits.map(({ name }) => shownState(store.held(step.scope.name, name, key), call.nowUs))
    tape.push({ call, step, verdicts, held })
  })
  return tape
}

function shownState(held: HeldState | undefined, nowUs: number): ShownState {
  if (held === undefined) return { fields: undefined, numbers: undefined }
  const { own, words } = held
  const isIdle = own.algorithm.resetUs(own, words, 0, nowUs) === 0
  return { fields: shownFields(own.algorithm.fields(own, words, 0)), numbers: own.numbers, isIdle }
}

export function shownFields(fields: StateFields | undefined): string | undefined {
  if (fields === undefined) return undefined
  const shown = Object.entries(fields).map(([name, value]) => `${name}=${value}`)
  return shown.sort().join(', ')
}

/** The step as another store is asked it. Its answer stands in its parts, so it gets its own. */
export function stepFor({ step: { op, scope, parts, aheadUs, ofUs, nowUs } }: Recorded): Step {
  const theirs = parts.map((part) => part.with({}))
  return new Step(op, scope, theirs, aheadUs, ofUs, nowUs)
}

/**
 * Throws where another store answers otherwise, or holds something else. `states`: what it holds
 * afterwards. Where it does not tell the numbers of a state, these show in what it answers later.
 */
export function compare(
  { call, step, verdicts, held }: Recorded,
  answers: readonly Verdict[],
  states: readonly Partial<ShownState>[],
): void {
  const expected = held.map((state, k) => (Object.hasOwn(states[k] as object, 'numbers') ? state : { fields: state.fields }))
  const [ours, theirs] = [
    `${shownVerdicts(step, verdicts)}\n${shownStates(expected)}`,
    `${shownVerdicts(step, answers)}\n${shownStates(states)}`,
  ]
  if (ours === theirs) return
  throw new Error(`${JSON.stringify(call)}\n${shownParts(step.parts)}\nexpected:\n${ours}\nthe other store:\n${theirs}`)
}

function shownStates(states: readonly Partial<ShownState>[]): string {
  return states.map(({ fields, numbers }) => `${fields} ${numbers}`).join('\n')
}

/** A settlement need not tell the rest. */
function shownVerdicts({ op }: Step, verdicts: readonly Verdict[]): string {
  if (op === 'settle') return verdicts.map(({ outcome, atUs, given }) => `${outcome} ${atUs} ${given}`).join('\n')
  return verdicts
    .map(({ outcome, remaining, retryUs, resetUs, delayUs, atUs, enteredUs, given }) =>
      [outcome, remaining, retryUs, resetUs, delayUs, atUs, enteredUs, given].join(' '),
    )
    .join('\n')
}

function shownParts(parts: readonly Part[]): string {
  return parts.map(({ limit, rule, cost }) => `${limit} ${rule.algorithm.type} ${rule.numbers} cost ${cost}`).join('\n')
}
