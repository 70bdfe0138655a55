/**
 * Law 6: a store that forgets a key the moment it is idle answers like one that never forgets,
 * under any mixture of numbers.
 */
import { expect, test } from 'vitest'
import type { Verdict } from '../../src/algorithms/decide.ts'
import { Step } from '../../src/stores/step.ts'
import type { OracleKind } from '../../src/testing/oracle.ts'
import type { WindowKind } from '../../src/testing/window-oracle.ts'
import { type Decider, PureStore } from './pure-store.ts'
import { type runTrace, scopesOf, type TraceScopes } from './run-trace.ts'
import { compare, recordTrace, stepFor } from './tape.ts'
import { SEED, Trace, traceCount } from './trace.ts'
import { WINDOW_KINDS, windowScopes, windowTrace } from './window-trace.ts'

const LEVELS: readonly OracleKind[] = ['gcra', 'tokenBucket', 'leakyBucket']
const LIMITER = 'lives'
const KEY = 'k'

/** Forgets what is idle before it decides. For a trace of one limit. */
class Forgetful implements Decider {
  readonly #store = new PureStore()
  #idleAtUs = Number.POSITIVE_INFINITY
  forgotten = 0

  apply(step: Step): readonly Verdict[] {
    const nowUs = step.nowUs as number
    if (nowUs >= this.#idleAtUs) {
      this.#store.apply(new Step('forget', step.scope, step.parts, -1, -1, nowUs))
      this.#idleAtUs = Number.POSITIVE_INFINITY
      this.forgotten += 1
    }
    const verdicts = this.#store.apply(step)
    const isHeld = this.#store.held(LIMITER, 'a', KEY) !== undefined
    this.#idleAtUs = isHeld ? nowUs + (verdicts[0] as Verdict).resetUs : Number.POSITIVE_INFINITY
    return verdicts
  }
}

function playForward(kind: OracleKind | WindowKind): { readonly steps: number; readonly forgotten: number } {
  let steps = 0
  let forgotten = 0
  for (let seed = SEED; seed < SEED + traceCount(120); seed++) {
    const { trace, scopes } = forwardTrace(kind, seed)
    const store = new Forgetful()
    for (const recorded of recordTrace(trace, scopes, KEY)) {
      // A state that is left is one more than what is idle: only the answers are compared.
      compare({ ...recorded, held: [] }, store.apply(stepFor(recorded)), [])
      steps += 1
    }
    forgotten += store.forgotten
  }
  return { steps, forgotten }
}

function forwardTrace(kind: OracleKind | WindowKind, seed: number): { trace: Parameters<typeof runTrace>[0]; scopes: TraceScopes } {
  if (LEVELS.includes(kind as OracleKind)) {
    const trace = new Trace(seed, [kind as OracleKind], { forwardOnly: true })
    return { trace, scopes: scopesOf(trace, LIMITER) }
  }
  const trace = windowTrace(kind as WindowKind, seed, { forwardOnly: true })
  return { trace, scopes: windowScopes(trace, LIMITER) }
}

test.each([...LEVELS, ...WINDOW_KINDS])('%s: expiry changes no answer', (kind) => {
  const { steps, forgotten } = playForward(kind)
  expect(forgotten).toBeGreaterThan(steps / 50)
})
