/** Charges and settlements: `/v1/charge` and `/v1/settle`. */
import type { Limiters } from '../running/limiters.ts'
import type { ChargeRequest, SettleRequest } from '../running/request.ts'
import { shown, type TakenDecision } from '../sluice.ts'
import { COMMON, checkPlan, limiterNamed, onlyFields, type Task } from './input.ts'
import { BadRequest } from './problem.ts'

const SETTLE_FIELDS = [...COMMON, 'actual', 'of']

/** A decision as the service has answered it, or what is needed of one. */
type Answered = TakenDecision & { readonly limiter?: unknown; readonly outcome?: unknown }

/** The library says what is wrong with key and cost before it touches anything. */
export function chargeTask(limiters: Limiters, body: unknown): Task<ChargeRequest> {
  const fields = onlyFields(body, COMMON, 'charge')
  const { key, cost = 1, plan } = fields
  checkPlan(plan)
  return { limiter: limiterNamed(limiters, fields.limiter), request: { key, cost, plan } as ChargeRequest }
}

export function settleTask(limiters: Limiters, body: unknown): Task<SettleRequest> {
  const fields = onlyFields(body, SETTLE_FIELDS, 'settle')
  const limiter = limiterNamed(limiters, fields.limiter)
  const { key, cost = 1, plan, actual, of } = fields
  checkPlan(plan)
  const request = { key, cost, plan, actual, of: takenBy(of, fields.limiter as string) } as SettleRequest
  // A key is wrong even if there is nothing to settle.
  limiter.check({ key: request.key, cost: 0, plan: request.plan, maxWaitMs: undefined })
  return { limiter, request }
}

/** In shadow a refused decision says that it was allowed: what the limits said is its outcome. */
function takenBy(of: unknown, limiter: string): unknown {
  if (typeof of !== 'object' || of === null) return of
  const answered = of as Answered
  if (answered.limiter !== undefined && answered.limiter !== limiter) {
    throw new BadRequest(
      400,
      'OF',
      `of.limiter ${shown(answered.limiter)} must be ${shown(limiter)}, the limiter that is asked to settle it`,
    )
  }
  return answered.outcome === undefined ? of : { ...answered, allowed: answered.outcome === 'allowed' }
}
