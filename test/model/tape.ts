/** A trace written down as it ran on the memory store, so that other stores can be played the same tape and asked the same questions. */

import type { Algorithm, EncodedState } from '../../src/algorithms/algorithm.ts'
import type { Ticket, Verdict } from '../../src/algorithms/decide.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import type { Part, Step } from '../../src/stores/store.ts'
import type { OracleKind } from '../../src/testing/oracle.ts'
import { decode } from '../support/decode.ts'
import { runTrace, scopesOf, type TraceScopes } from './run-trace.ts'
import { type Call, Trace } from './trace.ts'

/** One step, what the memory store answered, and what it held afterwards: for each limit of the scope, decoded. */
export interface Recorded {
  readonly call: Call
  readonly step: Step
  readonly verdicts: readonly Verdict[]
  readonly held: readonly Decoded[]
}

/** The numbers and the words of a state; undefined for none. As text, because that is how they are compared. */
export type Decoded = string | undefined

export function record(seed: number, kinds: readonly OracleKind[], limiter: string, key: string): Recorded[] {
  const trace = new Trace(seed, kinds)
  return recordTrace(trace, scopesOf(trace, limiter), key, decoded)
}

/** `read` tells the state of a limit as text. */
export function recordTrace(trace: Pick<Trace, 'next'>, scopes: TraceScopes, key: string, read: typeof decoded): Recorded[] {
  const store = memoryStore()
  const tape: Recorded[] = []
  runTrace(trace, store, scopes, key, ({ call, step, verdicts }) => {
    const held = step.scope.limits.map(({ name, rule }) => read(rule.algorithm, store.inspect(step.scope.name, name, key)))
    tape.push({ call, step, verdicts: verdicts.map((verdict) => ({ ...verdict })), held })
  })
  return tape
}

export function decoded(algorithm: Algorithm, state: EncodedState | undefined): Decoded {
  if (state === undefined) return undefined
  const words = new Float64Array(8)
  const numbers = decode(algorithm, state, words, 0)
  return `${numbers}: ${words.join(' ')}`
}

/** Plays tapes to another store: knows which of its tickets stands for which of memory's, and finds the first difference. */
export class Playback {
  readonly #tickets = new Map<Ticket, Ticket>()

  /** The step as the other store is asked it: with its own tickets. */
  stepFor({ step }: Recorded): Step {
    if (step.parts.every(({ ticket }) => ticket === undefined)) return step
    return { ...step, parts: step.parts.map((part) => ({ ...part, ticket: part.ticket && this.#tickets.get(part.ticket) })) }
  }

  compare({ call, step, verdicts, held }: Recorded, answers: readonly Verdict[], states: readonly Decoded[]): void {
    verdicts.forEach((verdict, p) => {
      const answer = answers[p] as Verdict
      if (verdict.ticket !== undefined && answer.ticket !== undefined) this.#tickets.set(verdict.ticket, answer.ticket)
    })
    const [ours, theirs] = [`${shownVerdicts(verdicts)}\n${held.join('\n')}`, `${shownVerdicts(answers)}\n${states.join('\n')}`]
    if (ours === theirs) return
    throw new Error(`${JSON.stringify(call)}\n${shownParts(step.parts)}\nmemory:\n${ours}\nthe other store:\n${theirs}`)
  }
}

function shownVerdicts(verdicts: readonly Verdict[]): string {
  return verdicts
    .map(({ outcome, remaining, retryUs, resetUs, delayUs, atUs, enteredUs, ticket }) =>
      [outcome, remaining, retryUs, resetUs, delayUs, atUs, enteredUs, ticket?.numbers, ticket?.words.join(',')].join(' '),
    )
    .join('\n')
}

function shownParts(parts: readonly Part[]): string {
  return parts.map(({ limit, rule, cost }) => `${limit} ${rule.algorithm.type} ${rule.numbers} cost ${cost}`).join('\n')
}
