/**
 * Where a request is let in or not. All adapters do the same three things with a gate: ask it
 * (`enter`), do what it says, and tell it how the response ended (`leave`, only where an option
 * asks for it).
 */
import type { Decision } from '../limiter/decision.ts'
import type { Abortable } from '../limiter/input.ts'
import { isReduced } from '../limiter/moving.ts'
import { admitted, type Entry, GONE, gone, PASSED, refused } from './entry.ts'
import { type HeaderWriter, headerWriter, partitionText, toldMs } from './headers.ts'
import { type Hold, holdOf } from './hold.ts'
import { functionsIn, keyFunction } from './key-source.ts'
import type { KeyFunction } from './keys.ts'
import { LateUsers } from './late-users.ts'
import { type AnyCost, type AnyKey, type AnyLimiter, checkingDelays, type LimiterSource, limiterSource } from './limiters.ts'
import { PerRequestMisuse } from './misuse.ts'
import { isNearLimit } from './near-limit.ts'
import { choicesOf, type HttpChoices, type HttpOptions, hasLimits, hasOwnLimits, type Told, withoutNames } from './options.ts'
import { checkHttpOptions } from './options-check.ts'
import { answeredWith, Refusals } from './refusal.ts'
import { asError, ClientLeft, disregard, type HttpOutcome, type HttpRequest, isPromise, type MaybePromise, whenKnown } from './request.ts'
import { giveBack, type HttpDecision, settleAtEnd } from './settling.ts'
import { WaitingRoom } from './waiting-room.ts'
import { explainOnce, type WarningCode } from './warnings.ts'

/** One request and what was found out about it. */
interface LimitedRequest<Native> {
  readonly native: Native
  readonly http: HttpRequest
  readonly limiter: AnyLimiter
  readonly key: AnyKey
  readonly cost: AnyCost
  readonly plan: string | undefined
}

export class Gate<Native, Connection = unknown> {
  readonly #choices: HttpChoices<Native>
  readonly #limiters: LimiterSource<Native>
  readonly #keyOf: KeyFunction<Native, AnyKey>
  readonly #waitingRoom: WaitingRoom | undefined
  readonly #writer: HeaderWriter | undefined
  readonly #refusals: Refusals<Native>
  readonly #signalOf: (connection: Connection) => Abortable | undefined
  readonly #lateUsers: LateUsers
  #misuse: PerRequestMisuse | undefined

  /**
   * `signalOf` makes a signal that is aborted when the client leaves. `more`: names of options that
   * the adapter itself reads. `limiters`: of another gate, instead of limits among the options.
   */
  constructor(
    options: object,
    signalOf: (connection: Connection) => Abortable | undefined,
    more: readonly string[] = [],
    limiters?: LimiterSource<Native>,
  ) {
    checkHttpOptions(options, more, limiters === undefined)
    this.#choices = choicesOf(options as HttpOptions<Native>)
    const { key, shadow = false, maxWaitMs = 0, maxQueue, headers = 'draft-11' } = this.#choices
    this.#limiters = checkingDelays(limiters ?? limiterSource(options as HttpOptions<Native>), maxWaitMs)
    this.#keyOf = keyFunction(key)
    this.#lateUsers = new LateUsers(functionsIn(key))
    // A shadow makes no request wait either.
    this.#waitingRoom = maxWaitMs === 0 || shadow ? undefined : new WaitingRoom(maxWaitMs, maxQueue)
    this.#writer = shadow ? undefined : headerWriter(headers)
    this.#refusals = new Refusals(this.#choices)
    this.#signalOf = signalOf
    if (hasLimits(options)) this.#misuse = new PerRequestMisuse()
  }

  /** A gate with other choices. It shares the limiter, unless the choices name one of their own. */
  with(options: object): Gate<Native, Connection> {
    if (hasOwnLimits(options)) return new Gate({ ...withoutNames(this.#choices), ...options }, this.#signalOf)
    return new Gate({ ...this.#choices, ...options }, this.#signalOf, [], this.#limiters)
  }

  /**
   * Of a limiter beside this gate's own, in the same store: undefined where that is the memory of
   * the process, which needs no name.
   */
  limiterOptionsFor(name: string): object | undefined {
    if (typeof this.#limiters === 'function') return undefined
    const { store, onStoreError } = this.#limiters
    return store.shared ? { name, store, onStoreError } : undefined
  }

  /**
   * `connection` is what the adapter knows the client's connection by; only a request that is not
   * decided at once looks at it.
   */
  enter(native: Native, http: HttpRequest, connection: Connection): Entry | Promise<Entry> {
    if (this.#misuse !== undefined) this.#noticeFirstRequest(this.#misuse)
    const { skip } = this.#choices
    try {
      const entered =
        skip === undefined
          ? this.#ask(native, http, connection)
          : whenKnown(skip(native), (isSkipped) => (isSkipped ? PASSED : this.#ask(native, http, connection)))
      return isPromise(entered) ? this.#enterLater(entered, connection) : entered
    } catch (error) {
      return this.#failed(error)
    }
  }

  #noticeFirstRequest(misuse: PerRequestMisuse): void {
    misuse.noticeFirstRequest()
    this.#misuse = undefined
  }

  #enterLater(entered: Promise<Entry>, connection: Connection): Promise<Entry> {
    // Now, because a runtime may begin to watch the connection only when it is asked to.
    const signal = this.#choices.shadow ? undefined : this.#signalOf(connection)
    return entered.then(
      (entry) => (signal?.aborted && !entry.gone ? gone(entry) : entry),
      (error) => this.#failed(error),
    )
  }

  /** A shadow refuses no request, whatever goes wrong in it. */
  #failed(error: unknown): Entry {
    if (error instanceof ClientLeft) return this.#choices.shadow ? PASSED : GONE
    if (!this.#choices.shadow) throw asError(error)
    explainOnce('SLUICE_SHADOW_FAILED', '', error)
    return PASSED
  }

  /** Finds out what is to be asked, at once if it can be known at once, and asks it. */
  #ask(native: Native, http: HttpRequest, connection: Connection): Entry | Promise<Entry> {
    const { cost: costs, plan: planOf } = this.#choices
    const key = this.#keyOf(native, http)
    let cost: MaybePromise<AnyCost> = 1
    let plan: MaybePromise<string | undefined>
    try {
      if (costs !== undefined) cost = typeof costs === 'function' ? costs(native) : costs
      if (planOf !== undefined) plan = planOf(native)
    } catch (error) {
      disregard(key, cost)
      throw error
    }
    const limiter = this.#limiters
    if (typeof limiter === 'function' || isPromise(key) || isPromise(cost) || isPromise(plan)) {
      return this.#askLater(native, http, connection, key, cost, plan)
    }
    return this.#decide({ native, http, limiter, key, cost, plan }, connection)
  }

  /**
   * By itself, because a function that makes functions makes room for what they use at every call.
   */
  #askLater(
    native: Native,
    http: HttpRequest,
    connection: Connection,
    ...found: [MaybePromise<AnyKey>, MaybePromise<AnyCost>, MaybePromise<string | undefined>]
  ): Entry | Promise<Entry> {
    let limiter: MaybePromise<AnyLimiter>
    try {
      limiter = typeof this.#limiters === 'function' ? this.#limiters(native) : this.#limiters
    } catch (error) {
      disregard(...found)
      throw error
    }
    const decide = ([key, cost, plan, known]: [AnyKey, AnyCost, string | undefined, AnyLimiter]) =>
      this.#decide({ native, http, limiter: known, key, cost, plan }, connection)
    return isPromise(limiter) || found.some(isPromise)
      ? Promise.all([...found, limiter]).then(decide)
      : decide([...(found as [AnyKey, AnyCost, string | undefined]), limiter])
  }

  #decide(asked: LimitedRequest<Native>, connection: Connection): Entry | Promise<Entry> {
    if (this.#waitingRoom !== undefined) return this.#wait(this.#waitingRoom, asked, this.#signalOf(connection))
    const { limiter, key, cost, plan } = asked
    const decision = plan === undefined ? limiter.consume(key, cost) : limiter.consume(key, cost, { plan })
    return isPromise(decision) ? this.#decided(asked, decision) : this.#entry(asked, decision, !decision.allowed)
  }

  async #decided(asked: LimitedRequest<Native>, decision: PromiseLike<HttpDecision>): Promise<Entry> {
    const known = await decision
    return this.#entry(asked, known, !known.allowed)
  }

  async #wait(room: WaitingRoom, asked: LimitedRequest<Native>, signal: Abortable | undefined): Promise<Entry> {
    const waited = await room.wait(asked, signal, (decision) => giveBack(decision as HttpDecision))
    return waited === 'gone' ? GONE : this.#entry(asked, waited.decision as HttpDecision, waited.isRefused)
  }

  /** `isRefused`: whatever the decision says, there may be no room to wait in. */
  #entry(asked: LimitedRequest<Native>, decision: HttpDecision, isRefused: boolean): Entry | Promise<Entry> {
    const headers = this.#headersOrRelease(asked, decision)
    const { onLimited, onNearLimit, nearLimit, shadow, refundWhen, settle } = this.#choices
    if (isRefused) {
      if (onLimited !== undefined) tell('SLUICE_ON_LIMITED_FAILED', onLimited, asked.native, decision)
      if (!shadow) return this.#refuse(asked, decision, headers)
    } else if (onNearLimit !== undefined && isNearLimit(decision, nearLimit)) {
      tell('SLUICE_ON_NEAR_LIMIT_FAILED', onNearLimit, asked.native, decision)
    }
    const isSettled = (refundWhen !== undefined || settle !== undefined) && decision.allowed && !decision.degraded
    const hold = holdOf(decision, this.#choices.maxHoldMs)
    const wantsEnd = isSettled || hold !== undefined || this.#lateUsers.isAtWork
    return admitted(decision, headers, wantsEnd ? this.#leaver(asked, decision, isSettled, hold) : undefined, hold)
  }

  #refuse({ native, http, limiter, plan }: LimitedRequest<Native>, decision: HttpDecision, headers: string[]): Entry | Promise<Entry> {
    // The server can do less than usual: that is not what the client did.
    const isFull = !decision.allowed && decision.reason === 'full'
    const isOurs = isFull || (decision.degraded && limiter.onStoreError === 'deny') || isReduced(limiter, decision)
    const usual = this.#refusals.usual(decision, toldMs(decision, limiter.scope(plan)), headers, isOurs, native, http)
    const { answer } = this.#choices
    if (answer === undefined) return refused(decision, usual)
    return whenKnown(answer(native, decision, usual), (given) => refused(decision, answeredWith(given, usual)))
  }

  /**
   * If a function of the user's fails, the request does not come to its handler: nobody would give
   * its place back.
   */
  #headersOrRelease(asked: LimitedRequest<Native>, decision: HttpDecision): string[] {
    try {
      return this.#headers(asked, decision)
    } catch (error) {
      decision.release?.({ outcome: 'ignored' })
      throw error
    }
  }

  /** Of a decision that the store had no part in nobody knows the figures. */
  #headers({ key, plan, limiter }: LimitedRequest<Native>, decision: Decision): string[] {
    if (this.#writer === undefined || decision.degraded) return []
    const { partitionKey } = this.#choices
    const partition = partitionKey === undefined ? '' : partitionText(partitionKey(key))
    return this.#writer(decision, limiter.scope(plan), partition)
  }

  #leaver(
    { native }: LimitedRequest<Native>,
    decision: HttpDecision,
    isSettled: boolean,
    hold: Hold | undefined,
  ): (outcome: HttpOutcome) => MaybePromise<unknown> {
    return (outcome) => {
      this.#lateUsers.look(native)
      const released = hold?.answered(outcome)
      const settled = isSettled ? settleAtEnd(this.#choices, decision, outcome, native) : undefined
      return isPromise(released) || isPromise(settled) ? Promise.all([released, settled]) : undefined
    }
  }
}

/** The answer does not depend on what it does with it. */
function tell<Native>(failure: WarningCode, listener: Told<Native>, native: Native, decision: Decision): void {
  const failed = (error: unknown) => explainOnce(failure, '', error)
  try {
    const told: unknown = listener(native, decision)
    if (isPromise(told)) told.then(undefined, failed)
  } catch (error) {
    failed(error)
  }
}
