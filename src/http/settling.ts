/**
 * The real cost of a request: given by its handler, or by the options `settle` and `refundWhen`
 * when its response has ended.
 */
import type { Decision } from '../limiter/decision.ts'
import type { Permit, Settleable } from '../limiter/limiter.ts'
import type { Store } from '../stores/store.ts'
import type { HttpChoices } from './options.ts'
import { type HttpOutcome, isPromise, type MaybePromise, whenKnown } from './request.ts'
import { explainOnce, type WarningCode } from './warnings.ts'

/**
 * The decision about a request. `settle(cost)` says what it really cost, once: the first to say so
 * is believed. Under a limit on what runs at once it is a permit, too: `signal` tells the handler
 * that its place is lost.
 */
export type HttpDecision<Name extends string = string> = Decision<Name> & Settleable<Name, Store> & Partial<Permit<Store>>

/** `refundWhen` is asked first. A refunded request cost nothing, and `settle` is not called. */
export function settleAtEnd<Native>(
  choices: HttpChoices<Native>,
  decision: HttpDecision,
  outcome: HttpOutcome,
  native: Native,
): MaybePromise<unknown> {
  const { refundWhen, settle } = choices
  if (refundWhen === undefined) return settleBy(settle, decision, outcome, native)
  return settled('SLUICE_REFUND_FAILED', () =>
    whenKnown(refundWhen(outcome, native), (isWanted) => (isWanted ? decision.settle(0) : settleBy(settle, decision, outcome, native))),
  )
}

export function giveBack(decision: HttpDecision): void {
  decision.release?.({ outcome: 'ignored' })
  // The store was charged nothing.
  if (!decision.degraded) settled('SLUICE_REFUND_FAILED', () => decision.settle(0))
}

function settleBy<Native>(
  settle: HttpChoices<Native>['settle'],
  decision: HttpDecision,
  outcome: HttpOutcome,
  native: Native,
): MaybePromise<unknown> {
  if (settle === undefined) return undefined
  return settled('SLUICE_SETTLE_FAILED', () =>
    whenKnown(settle(outcome, native), (cost) => (cost === undefined ? undefined : decision.settle(cost))),
  )
}

/** The response is out: an error now can only become a warning. */
function settled(failure: WarningCode, settle: () => MaybePromise<unknown>): MaybePromise<unknown> {
  const failed = (error: unknown) => explainOnce(failure, '', error)
  try {
    const done = settle()
    return isPromise(done) ? done.then(undefined, failed) : undefined
  } catch (error) {
    return failed(error)
  }
}
