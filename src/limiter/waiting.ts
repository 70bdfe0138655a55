/**
 * The verbs that wait: a call that cannot go at once stands in a queue, and acts when its turn has
 * come.
 */
import { onlyKnown } from '../algorithms/rate.ts'
import { shown } from '../errors.ts'
import type { Answer as WaitAnswer } from '../stores/queue/question.ts'
import { type Turn, Waiter, type WaitRefusal } from '../stores/queue/waiter.ts'
import type { Part } from '../stores/step.ts'
import type { Store } from '../stores/store.ts'
import { AskingLimiter } from './asking.ts'
import { atItsTime, decisionOf } from './decision.ts'
import { type Abortable, ACQUIRE_OPTIONS, checkSignal, promised, timeoutUs } from './input.ts'
import type { Acquired, AcquireOptions, Answer, Settleable } from './limiter.ts'
import type { CostOf, DecisionOf, KeyOf, LimitName, Limits, NamedRule } from './options.ts'
import { type AnyFunction, type PaceOptions, paced, type Wrapped, wrapped } from './pacing.ts'
import { type Plan, partsOf } from './plans.ts'
import { WaitError } from './wait-error.ts'

const NO_SIGNALS: readonly Abortable[] = []

/** A decision that took something. */
export type Taken<L extends Limits, S> = DecisionOf<L> & Settleable<LimitName<L>, S>

export abstract class WaitingLimiter<L extends Limits, S extends Store, P extends string> extends AskingLimiter<L, S, P> {
  #lastWanted: { readonly plan: unknown; readonly key: string; readonly cost: number; readonly parts: readonly Part[] } | undefined =
    undefined

  /** Ends every wait. One function for all: of those who wait there may be many. */
  readonly #ended = (call: Waiter<LimitName<L>>) => {
    const turn = call.turn as Turn
    // The promise of one that waited long is old, and keeps the call until the old are swept.
    call.turn = undefined
    this.waitEnded(call.key)
    if (turn.refusal === 'FAILED') return this.failed(turn.reason)
    return this.acted(this.#turnOf(call, turn), call.fn)
  }

  abstract tryAcquire(key: KeyOf<L>, cost?: CostOf<L>): boolean
  abstract consume(key: KeyOf<L>, cost?: CostOf<L>): Answer<S, Taken<L, S>>

  acquire(key: KeyOf<L>, options: AcquireOptions<LimitName<L>, P> = {}): Promise<Acquired<LimitName<L>, S>> {
    return promised(this.acquireAnd<Acquired<LimitName<L>, S>>, this, key, options)
  }

  /**
   * `ended`: what else ends the wait, besides the signal among the options. `fn`: what is done with
   * what was acquired; without it, that is the result.
   */
  protected acquireAnd<T>(key: KeyOf<L>, options: AcquireOptions<LimitName<L>, P>, ended?: Abortable, fn?: AnyFunction): Promise<T> {
    onlyKnown(options, ACQUIRE_OPTIONS, 'the options of a verb')
    const { cost = 1, timeoutMs, signal, plan } = options
    if (timeoutMs === undefined && signal === undefined && plan === undefined && this.goesAtOnce()) {
      const decision = this.consume(key, cost) as Taken<L, S>
      if (decision.allowed) return Promise.resolve(this.acted(Object.assign(decision, { waitedMs: 0 }), fn) as T)
    }
    return this.#wait(key, cost, options, ended, fn) as Promise<T>
  }

  /**
   * Whether a call that is allowed now need not stand in a queue: nobody waits, nothing is spaced
   * out, nobody is to be told of a wait, or of its failure.
   */
  protected goesAtOnce(): boolean {
    const { guarded, queues, listeners, plans } = this
    return guarded.mode === 'sync' && queues.isEmpty && !listeners.any && !listeners.hearFailures && !plans.base.spaced
  }

  wrap<Fn extends AnyFunction>(
    key: KeyOf<L> | ((...args: Parameters<Fn>) => KeyOf<L>),
    fn: Fn,
    options: PaceOptions<LimitName<L>, P, Parameters<Fn>> = {},
  ): Wrapped<Fn> {
    return wrapped<LimitName<L>, P, Fn>(
      (of, cost, bounds, act) => {
        const isTaken = bounds === undefined && this.goesAtOnce() && this.tryAcquire(of, cost)
        return isTaken ? act() : this.acquireAnd(of, { ...bounds, cost }, undefined, act)
      },
      key,
      fn,
      options,
    )
  }

  pace<Item>(
    key: KeyOf<L> | ((item: Item) => KeyOf<L>),
    source: Iterable<Item> | AsyncIterable<Item>,
    options: PaceOptions<LimitName<L>, P, [item: Item]> = {},
  ): AsyncGenerator<Item, void, undefined> {
    return paced((of, bounds, ended) => this.acquireAnd(of, bounds, ended), key, source, options)
  }

  waiting(key?: KeyOf<L>): number {
    const queues = key === undefined ? this.queues.all() : this.queues.queues(partsOf(this.plans.base, key, 0))
    return queues.reduce((count, { size }) => count + size, 0)
  }

  /** Waits its turn, and acts then. */
  #wait(
    key: KeyOf<L>,
    cost: CostOf<L>,
    { plan: planName, timeoutMs, signal }: AcquireOptions<LimitName<L>, P>,
    ended: Abortable | undefined,
    fn: AnyFunction | undefined,
  ): Promise<unknown> {
    const plan = this.plans.of(planName)
    const parts = this.#wantedParts(plan, key, cost)
    const withinUs = timeoutUs(timeoutMs)
    checkSignal(signal)
    this.checkOpen()
    const signals = signal === undefined && ended === undefined ? NO_SIGNALS : [signal, ended].filter((each) => each !== undefined)
    const call = new Waiter(key, cost, parts, this.#beginsUs(), withinUs, signals, fn)
    this.waits(key)
    return this.queues.wait(call, planName, plan).then(this.#ended)
  }

  /** Of a clock that throws, listeners are told too. */
  #beginsUs(): number {
    try {
      return this.ownClock.nowUs()
    } catch (error) {
      return this.failed(error)
    }
  }

  /**
   * Mostly many wait for the same. Queues only read these parts, and ask by copies, so all of them
   * can have the same.
   */
  #wantedParts(plan: Plan<LimitName<L>>, key: KeyOf<L>, cost: CostOf<L>): readonly Part[] {
    const last = this.#lastWanted
    if (last?.plan === plan && last.key === key && last.cost === cost) return last.parts
    const parts = partsOf(plan, key, cost)
    // What a caller passed by name, the caller may change.
    if (typeof key === 'string' && typeof cost === 'number') this.#lastWanted = { plan, key, cost, parts }
    return parts
  }

  /** Does with what was acquired what the caller wants. */
  protected acted(acquired: unknown, fn: AnyFunction | undefined): unknown {
    return fn === undefined ? acquired : (fn as (acquired: unknown) => unknown)(acquired)
  }

  /** Told of every call that waits. */
  protected waits(_key: KeyOf<L>): void {}

  /** And when it waits no longer, however that ended. */
  protected waitEnded(_key: KeyOf<L>): void {}

  #turnOf(call: Waiter<LimitName<L>>, { refusal, answer, delayUs, servedUs }: Turn): Acquired<LimitName<L>, S> {
    const { key, cost, parts, sinceUs, queue } = call
    const { settler } = this.plans.still(queue.planName)
    const decision =
      answer && (decisionOf(answer.limits as readonly NamedRule<LimitName<L>>[], answer.verdicts, settler, key, cost) as DecisionOf<L>)
    if (refusal !== undefined) {
      const error = new WaitError(refusal as WaitRefusal, `a cost of ${shown(cost)} for key ${shown(key)}`, decision)
      // A booking from before a change of numbers is no decision on a wait that ended.
      if (decision?.allowed !== false) this.listeners.tellFailure({ limiter: this.name, error })
      else this.tell('acquire', key, cost, { plan: queue.planName as P | undefined }, decision, sinceUs, servedUs)
      throw error
    }
    const isBooked = parts.every(({ rule }) => rule.algorithm.bookable)
    return this.acquired(call, atItsTime(decision as DecisionOf<L>, delayUs, isBooked), answer as WaitAnswer, servedUs)
  }

  /** The result of a wait. */
  protected acquired(
    { key, cost, sinceUs, queue }: Waiter<LimitName<L>>,
    decision: DecisionOf<L>,
    _answer: WaitAnswer,
    servedUs: number,
  ): Acquired<LimitName<L>, S> {
    this.tell('acquire', key, cost, { plan: queue.planName as P | undefined }, decision, sinceUs, servedUs)
    return Object.assign(decision, { waitedMs: (servedUs - sinceUs) / 1000 }) as unknown as Acquired<LimitName<L>, S>
  }
}
