/** Algorithms that must agree with each other. */
import { expect, test } from 'vitest'
import type { Verdict } from '../../src/algorithms/decide.ts'
import { Part, type Scope, Step } from '../../src/stores/step.ts'
import type { OracleKind } from '../../src/testing/oracle.ts'
import type { WindowNumbers } from '../../src/testing/window-oracle.ts'
import { PureStore } from './pure-store.ts'
import { Random } from './random.ts'
import { answersOf, runTrace, scopesOf, type TraceScopes } from './run-trace.ts'
import { SEED, Trace, traceCount } from './trace.ts'
import { dividedBy, windowRule } from './window-trace.ts'

const KEY = 'k'

/**
 * Another algorithm that is asked the same: a settlement says of a charge what the first was told.
 */
class Twin {
  readonly #store = new PureStore()
  readonly #scopes: TraceScopes

  constructor(kind: OracleKind, seed: number) {
    // The same seed makes the same numbers.
    this.#scopes = scopesOf(new Trace(seed, [kind]), 'twins')
  }

  answer({ op, parts, aheadUs, ofUs, nowUs }: Step, numbers: number): Verdict | undefined {
    const scope = this.#scopes[numbers] as Scope
    const [{ rule }] = scope.limits as [Scope['limits'][number]]
    const theirs = parts.map((part) => part.with({ rule }))
    const [answer] = answersOf(this.#store, new Step(op, scope, theirs, aheadUs, ofUs, nowUs))
    return answer
  }
}

test('with equal numbers gcra, token bucket and leaky bucket (as a meter) decide alike on any tape', () => {
  const traces = traceCount(1_000)
  let steps = 0
  let meterSteps = 0
  for (let seed = SEED; seed < SEED + traces; seed++) {
    const trace = new Trace(seed, ['gcra'])
    // A leaky bucket that is booked ahead is a queue, not a meter.
    const isMeter = trace.maxAheadUs === 0
    const twins = [new Twin('tokenBucket', seed), ...(isMeter ? [new Twin('leakyBucket', seed)] : [])]
    runTrace(trace, new PureStore(), scopesOf(trace, 'twins'), KEY, ({ call, step, verdicts }) => {
      for (const twin of twins) {
        const answer = twin.answer(step, call.numbers)
        if (meter(answer) !== meter(verdicts[0])) expect.fail(`${JSON.stringify(call)}: ${meter(verdicts[0])}, the twin ${meter(answer)}`)
      }
      steps += 1
      if (isMeter) meterSteps += 1
    })
  }
  console.log(`gcra and token bucket agree on ${steps} steps, the leaky bucket as a meter on ${meterSteps} of them (${traces} traces)`)
  expect(meterSteps).toBeGreaterThan(steps / 4)
})

/** All but the delay, which only a leaky bucket gives to who is admitted at once. */
function meter(verdict: Verdict | undefined): string {
  return verdict === undefined ? 'nothing' : [verdict.outcome, verdict.remaining, verdict.retryUs, verdict.resetUs, verdict.atUs].join(' ')
}

/** A limit on a key of its own. */
class Key {
  readonly #store = new PureStore()
  readonly #scope: Scope

  constructor(kind: 'slidingWindow' | 'slidingLog', numbers: WindowNumbers) {
    this.#scope = { name: 'pair', limits: [{ name: 'a', rule: windowRule(kind, numbers) }] }
  }

  step(op: 'take' | 'ask', nowUs: number, cost: number): Verdict {
    const [{ name, rule }] = this.#scope.limits as [Scope['limits'][number]]
    const step = new Step(op, this.#scope, [new Part(name, rule, KEY, cost)], -1, -1, nowUs)
    return (this.#store.apply(step) as readonly [Verdict])[0]
  }
}

/** Calls that come closer and further, forward in time; a third of them too costly to fit. */
function forwardCalls(random: Random, { limit, lengthUs }: WindowNumbers): { nowUs: number; cost: number }[] {
  let nowUs = 1_700_000_000_000_000 + random.whole(0, lengthUs)
  return Array.from({ length: 200 }, () => {
    nowUs += random.pick([0, 1, random.whole(0, Math.ceil(lengthUs / 20)), random.magnitude(1, 2 * lengthUs)])
    return { nowUs, cost: random.pick([1, 1, random.whole(1, limit)]) }
  })
}

function somePair(random: Random): WindowNumbers {
  const slots = random.pick([1, 2, 7, 10, 60])
  const lengthUs = dividedBy(slots, random.pick([1_000_000, random.whole(60, 1_000), random.magnitude(60, 86_400_000_000)]))
  return { limit: random.pick([random.whole(1, 10), random.whole(1, 50)]), lengthUs, anchor: 0, slots }
}

/**
 * A sliding window counts the slots that a log of `window - window / slots` still sees in full, and
 * the slots that it sees at all are no older than `window + window / slots`. So it lies between two
 * logs: what it was charged leaves neither before the one nor after the other.
 */
test('a sliding window never has less in use than a log of window - window / slots that saw the same admissions, nor more than one of window + window / slots', () => {
  const random = new Random(SEED)
  let compared = 0
  for (let k = 0; k < traceCount(1_000); k++) {
    const numbers = somePair(random)
    const { limit, lengthUs, slots } = numbers
    const window = new Key('slidingWindow', numbers)
    const shorter = new Key('slidingLog', { ...numbers, lengthUs: Math.max(1, lengthUs - lengthUs / slots) })
    // It is only to count, so it must never refuse.
    const most = 200 * limit
    const longer = new Key('slidingLog', { ...numbers, limit: most, lengthUs: lengthUs + lengthUs / slots })
    for (const { nowUs, cost } of forwardCalls(random, numbers)) {
      const { outcome, remaining } = window.step('take', nowUs, cost)
      if (outcome === 'allowed') {
        // What the window admits, the shorter log admits: a window is never the more generous of
        // the two.
        if (shorter.step('take', nowUs, cost).outcome !== 'allowed')
          expect.fail(`${JSON.stringify(numbers)}: more than the shorter log admits`)
        longer.step('take', nowUs, cost)
      }
      const used = limit - remaining
      const least = limit - shorter.step('ask', nowUs, 0).remaining
      const atMost = most - longer.step('ask', nowUs, 0).remaining
      if (used < least || used > atMost)
        expect.fail(`${JSON.stringify(numbers)} at ${nowUs}: ${used} in use, the logs say ${least} and ${atMost}`)
      compared += 1
    }
  }
  console.log(`a sliding window lies between two logs on ${compared} steps`)
})

test('where nothing has left its slot and nothing has left the log, a sliding window and a log of the same numbers decide alike', () => {
  const random = new Random(SEED)
  for (let k = 0; k < traceCount(1_000); k++) {
    const numbers = somePair(random)
    const [window, log] = [new Key('slidingWindow', numbers), new Key('slidingLog', numbers)]
    // From the start of a slot on, for less than a window.
    let nowUs = 1_700_000_000_000_000 - (1_700_000_000_000_000 % numbers.lengthUs)
    const endUs = nowUs + numbers.lengthUs
    for (; nowUs < endUs; nowUs += random.whole(0, Math.ceil(numbers.lengthUs / 10))) {
      const cost = random.whole(1, numbers.limit)
      const [ours, theirs] = [window.step('take', nowUs, cost), log.step('take', nowUs, cost)]
      expect([ours.outcome, ours.remaining]).toEqual([theirs.outcome, theirs.remaining])
    }
  }
})

test('a sliding window may admit in a full window more than a log does: nearly twice the limit, as its page says', () => {
  const numbers = { limit: 100, lengthUs: 1_000_000, anchor: 0, slots: 10 }
  const [window, log] = [new Key('slidingWindow', numbers), new Key('slidingLog', numbers)]
  expect([window.step('take', 99_999, 100).outcome, log.step('take', 99_999, 100).outcome]).toEqual(['allowed', 'allowed'])
  expect([window.step('take', 1_099_998, 99).outcome, log.step('take', 1_099_998, 99).outcome]).toEqual(['allowed', 'limited'])
})
