/** A limiter turns a verb into one step for the store, and the store's verdicts into a decision. */
import type { Verdict } from '../algorithms/decide.ts'
import { MAX_COST, MAX_PERMITS } from '../algorithms/rate.ts'
import type { OpenStates, Store } from '../stores/store.ts'
import { type Decision, decisionOf } from './decision.ts'
import type { DecisionEvent } from './events.ts'
import { type Cost, type Key, RESERVE_OPTIONS, spanUs } from './input.ts'
import type { Answer, Limiter, ReserveOptions, VerbOptions } from './limiter.ts'
import type { CostOf, DecisionOf, KeyOf, LimitName, Limits } from './options.ts'
import { filled, type Plan, partsOf } from './plans.ts'
import { type Taken, WaitingLimiter } from './waiting.ts'

export class StoreLimiter<L extends Limits, S extends Store, P extends string> extends WaitingLimiter<L, S, P> implements Limiter<L, S, P> {
  /** Only where the store answers at once: see `AsyncLimiter`. */
  tryAcquire(key: Key<LimitName<L>>, cost: Cost<LimitName<L>> = 1, options?: VerbOptions<P>): boolean {
    const { base } = this.plans
    if (options !== undefined || this.isClosed || this.listeners.any) return this.#tryAcquireWith(key, cost, options)
    return (base.states as OpenStates).apply(filled(base, base.take, key, cost, MAX_PERMITS), false)
  }

  /** With options, for listeners, or after `close`. */
  #tryAcquireWith(key: Key<LimitName<L>>, cost: Cost<LimitName<L>>, options: VerbOptions<P> | undefined): boolean {
    const plan = this.planOf(options)
    const states = plan.states as OpenStates
    if (this.listeners.any) return this.#decidedNow('tryAcquire', plan, states, key, cost, options).allowed
    this.checkOpen()
    return states.apply(filled(plan, plan.take, key, cost, MAX_PERMITS), false)
  }

  consume(key: Key<LimitName<L>>, cost: Cost<LimitName<L>> = 1, options?: VerbOptions<P>): Answer<S, Taken<L, S>> {
    const { base } = this.plans
    if (options !== undefined || base.states === undefined || this.isClosed || this.listeners.any)
      return this.#decidedWith('consume', key, cost, options) as Answer<S, Taken<L, S>>
    base.states.apply(filled(base, base.take, key, cost, MAX_PERMITS), true)
    return decisionOf(base.scope.limits, base.verdicts, base.settler, key, cost) as Answer<S, Taken<L, S>>
  }

  peek(key: KeyOf<L>, cost: CostOf<L> = 1, options?: VerbOptions<P>): Answer<S, DecisionOf<L>> {
    const plan = this.planOf(options)
    return this.apply('ask', plan, partsOf(plan, key, cost), (verdicts) => decisionOf(plan.scope.limits, verdicts))
  }

  reserve(key: KeyOf<L>, cost: CostOf<L> = 1, options: ReserveOptions<P> = {}): Answer<S, Taken<L, S>> {
    const plan = this.planOf(options, RESERVE_OPTIONS)
    const maxWaitUs = options.maxWaitMs === undefined ? this.maxAheadUs : spanUs(options.maxWaitMs, 'maxWaitMs')
    const parts = partsOf(plan, key, cost)
    const sinceUs = this.heardSinceUs()
    const read = (verdicts: readonly Verdict[]) => {
      const decision = decisionOf(plan.scope.limits, verdicts, plan.settler, key, cost)
      this.tell('reserve', key, cost, options, decision, sinceUs)
      return decision as unknown as Taken<L, S>
    }
    return this.apply('take', plan, parts, read, Math.min(maxWaitUs, this.maxAheadUs))
  }

  charge(key: KeyOf<L>, cost: CostOf<L> = 1, options?: VerbOptions<P>): Answer<S, DecisionOf<L>> {
    const { base } = this.plans
    if (options !== undefined || base.states === undefined || this.isClosed || this.listeners.any)
      return this.#decidedWith('charge', key, cost, options) as Answer<S, DecisionOf<L>>
    base.states.apply(filled(base, base.charge, key, cost, MAX_COST), true)
    return decisionOf(base.scope.limits, base.verdicts) as Answer<S, DecisionOf<L>>
  }

  refund(key: KeyOf<L>, cost: CostOf<L> = 1, options?: VerbOptions<P>): Answer<S, void> {
    const plan = this.planOf(options)
    const parts = partsOf(plan, key, cost)
    return this.apply('give', plan, parts, (verdicts) => this.queues.given(parts, verdicts, options?.plan))
  }

  reset(key: KeyOf<L>): Answer<S, void> {
    const parts = partsOf(this.plans.base, key, 0)
    return this.apply('forget', this.plans.base, parts, () => {
      for (const queue of this.queues.queues(parts)) queue.startAnew()
    })
  }

  /**
   * `consume` and `charge` with options, on a store that answers later, for listeners, or after
   * `close`.
   */
  #decidedWith(
    verb: 'consume' | 'charge',
    key: Key<LimitName<L>>,
    cost: Cost<LimitName<L>>,
    options: VerbOptions<P> | undefined,
  ): Answer<S, Decision<LimitName<L>>> {
    const plan = this.planOf(options)
    if (plan.states === undefined) return this.#decidedLater(verb, plan, key, cost, options)
    return this.#decidedNow(verb, plan, plan.states, key, cost, options) as Answer<S, Decision<LimitName<L>>>
  }

  /** Takes or charges, and tells the listeners. */
  #decidedNow(
    verb: DecisionEvent['verb'],
    plan: Plan<LimitName<L>>,
    states: OpenStates,
    key: Key<LimitName<L>>,
    cost: Cost<LimitName<L>>,
    options: VerbOptions<P> | undefined,
  ): Decision<LimitName<L>> {
    const sinceUs = this.heardSinceUs()
    const isCharge = verb === 'charge'
    this.checkOpen()
    states.apply(isCharge ? filled(plan, plan.charge, key, cost, MAX_COST) : filled(plan, plan.take, key, cost, MAX_PERMITS), true)
    const decision = decisionOf(plan.scope.limits, plan.verdicts, isCharge ? undefined : plan.settler, key, cost)
    if (sinceUs >= 0) this.tell(verb, key, cost, options, decision, sinceUs)
    return decision
  }

  /** The same on a store that answers later. */
  #decidedLater(
    verb: DecisionEvent['verb'],
    plan: Plan<LimitName<L>>,
    key: Key<LimitName<L>>,
    cost: Cost<LimitName<L>>,
    options: VerbOptions<P> | undefined,
  ): Answer<S, Decision<LimitName<L>>> {
    const sinceUs = this.heardSinceUs()
    const isCharge = verb === 'charge'
    return this.apply(isCharge ? verb : 'take', plan, partsOf(plan, key, cost, isCharge ? MAX_COST : MAX_PERMITS), (verdicts) => {
      const decision = decisionOf(plan.scope.limits, verdicts, isCharge ? undefined : plan.settler, key, cost)
      this.tell(verb, key, cost, options, decision, sinceUs)
      return decision
    })
  }
}
