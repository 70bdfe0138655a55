/** Fallbacks: the answers of each failure policy while the store is down. */
import type { Rule } from '../../algorithms/algorithm.ts'
import type { Verdict } from '../../algorithms/decide.ts'
import { memoryStore } from '../memory/memory-store.ts'
import { Part, type Scope, Step } from '../step.ts'
import type { OpenStates } from '../store.ts'
import { shareOf } from './share.ts'

/** The policy of a limiter when its store fails. `throw`: the verb rejects with `STORE`. */
export type FailurePolicy = 'throw' | 'allow' | 'deny' | 'local'

export interface Outage {
  /** How long until the store is tried again. */
  retryUs(): number
  /** For how long it has been down. */
  openForUs(): number
}

/** Decides a step that takes, asks or gives back. */
export type Fallback = (step: Step, nowUs: number, outage: Outage) => Verdict[]

/** Undefined: nobody decides, and the failure is the answer. */
export function fallbackFor(policy: FailurePolicy, localShare: number): Fallback | undefined {
  if (policy === 'allow') return allowing()
  if (policy === 'deny') return denied
  return policy === 'local' ? deciding(localShare) : undefined
}

/** The memory of this process, at the times that it is told. */
class FallbackMemory {
  readonly #store = memoryStore()
  #scope: Scope | undefined = undefined
  #states: OpenStates | undefined = undefined
  #nowUs = 0

  apply(step: Step, nowUs: number): readonly Verdict[] {
    this.#nowUs = nowUs
    const states = this.#statesOf(step.scope)
    states.apply(step, true)
    return step.parts.map(({ verdict }) => verdict)
  }

  /** The limits may have got other numbers. */
  #statesOf(scope: Scope): OpenStates {
    if (this.#states !== undefined && scope === this.#scope) return this.#states
    const states = this.#store.open(scope, () => this.#nowUs)
    this.#states?.close()
    this.#states = states
    this.#scope = scope
    return states
  }
}

/** As if the key had never been used: an empty memory is asked. */
function allowing(): Fallback {
  const memory = new FallbackMemory()
  return (step, nowUs) => {
    const isCharge = step.op === 'charge'
    const parts = step.parts.map(
      ({ limit, rule, key, cost }) => new Part(limit, rule, key, isCharge ? Math.min(cost, rule.capacity) : cost),
    )
    const verdicts = memory.apply(new Step('ask', step.scope, parts, -1, -1, undefined), nowUs)
    return verdicts.map((verdict, k) => {
      const cost = (step.op === 'take' || step.op === 'line' || isCharge) && verdict.outcome === 'allowed' ? (parts[k] as Part).cost : 0
      // Nothing is counted here, so every permit stays held.
      const given = step.op === 'renew' ? (step.parts[k]?.ticket?.words.length ?? 0) : 0
      return { ...verdict, remaining: verdict.remaining - cost, given, degraded: true }
    })
  }
}

/** Nothing fits until the store is tried again, and what is given back is dropped. */
function denied(step: Step, nowUs: number, outage: Outage): Verdict[] {
  const retryUs = outage.retryUs()
  return step.parts.map(({ cost, rule }): Verdict => {
    const rest = { remaining: 0, resetUs: retryUs, delayUs: 0, atUs: nowUs, enteredUs: nowUs, degraded: true }
    if (step.op === 'give' || step.op === 'settle' || step.op === 'renew' || cost === 0) return { outcome: 'allowed', retryUs: 0, ...rest }
    if (cost > rule.capacity && step.op !== 'charge') return { outcome: 'impossible', retryUs: Number.POSITIVE_INFINITY, ...rest }
    return { outcome: 'store', retryUs, ...rest }
  })
}

/**
 * By the memory of this process, with a share of each limit. It outlives the outage: the next one
 * begins where this one ended.
 */
function deciding(share: number): Fallback {
  const memory = new FallbackMemory()
  const shares = new WeakMap<Rule, Rule>()
  const shareFor = (rule: Rule): Rule => {
    const known = shares.get(rule)
    if (known !== undefined) return known
    const made = shareOf(rule, share)
    shares.set(rule, made)
    return made
  }
  return (step, nowUs, outage) => {
    // There is no line here, and what is renewed is what this memory gave out.
    const op = step.op === 'line' ? 'take' : step.op
    const ofMemory = (part: Part) => (op === 'renew' ? part.with({ rule: shareFor(part.rule), cost: 0 }) : undefined)
    const parts = step.parts.map((part) => ofMemory(part) ?? new Part(part.limit, shareFor(part.rule), part.key, part.cost))
    // A cost above the share, but within the limit, must wait for the store.
    const isBounded = op === 'take' || op === 'ask'
    if (isBounded && parts.some(({ rule, cost }) => cost > rule.capacity)) return denied(step, nowUs, outage)
    // The memory neither gives back nor settles charges of the store.
    const isOfTheStore = step.op === 'give' && step.ofUs >= 0 && step.ofUs < nowUs - outage.openForUs()
    if (step.op === 'settle' || isOfTheStore) return denied(step, nowUs, outage)
    // Nothing is booked ahead of the store's return: who may not act at once tries again.
    const verdicts = memory.apply(new Step(op, step.scope, parts, Math.min(step.aheadUs, 0), step.ofUs, undefined), nowUs)
    return verdicts.map((verdict) => ({ ...verdict, degraded: true }))
  }
}
