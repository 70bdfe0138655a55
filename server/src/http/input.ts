/** Input of callers, checked before anything is touched. */
import type { Limiters } from '../running/limiters.ts'
import type { AcquireRequest, DecisionRequest, Verb } from '../running/request.ts'
import type { RunningLimiter } from '../running/running-limiter.ts'
import { SluiceError, shown } from '../sluice.ts'
import { BadRequest } from './problem.ts'

type Fields = Readonly<Record<string, unknown>>

export const MAX_BATCH = 1_000
export const MAX_TIMEOUT_MS = 600_000
export const DEFAULT_TIMEOUT_MS = 30_000
export const VERBS: readonly Verb[] = ['consume', 'peek', 'reserve', 'refund']

/** The fields of every question. */
export const COMMON = ['limiter', 'key', 'cost', 'plan']
const DECISION_FIELDS = [...COMMON, 'verb', 'maxWaitMs']
const ACQUIRE_FIELDS = [...COMMON, 'timeoutMs']

export interface Task<Request> {
  readonly limiter: RunningLimiter
  readonly request: Request
}

/** One decision, or undefined where the body asks for many. */
export function batchIn(body: unknown): readonly unknown[] | undefined {
  if (typeof body !== 'object' || body === null || !Object.hasOwn(body, 'decisions')) return undefined
  const { decisions } = onlyFields(body, ['decisions'], 'the body')
  if (!Array.isArray(decisions) || decisions.length === 0 || decisions.length > MAX_BATCH) {
    throw new BadRequest(400, 'BATCH', `decisions ${shown(decisions)} must be a list of 1 to ${MAX_BATCH}`)
  }
  return decisions
}

/** Says which of many is wrong. */
export function taskOfBatch(limiters: Limiters, item: unknown, place: number): Task<DecisionRequest> {
  try {
    return decisionTask(limiters, item)
  } catch (error) {
    if (error instanceof BadRequest) throw new BadRequest(error.status, error.code, `decisions[${place}]: ${error.message}`)
    if (error instanceof SluiceError) throw new SluiceError(error.code, `decisions[${place}]: ${error.message}`)
    throw error
  }
}

export function decisionTask(limiters: Limiters, body: unknown): Task<DecisionRequest> {
  const fields = onlyFields(body, DECISION_FIELDS, 'a decision')
  const limiter = limiterNamed(limiters, fields.limiter)
  const { verb = 'consume', maxWaitMs } = fields
  if (!VERBS.includes(verb as Verb)) throw new BadRequest(400, 'VERB', `verb ${shown(verb)} must be one of ${VERBS.join(', ')}`)
  // An option that does nothing would hide a mistake.
  if (maxWaitMs !== undefined && verb !== 'reserve') {
    throw new BadRequest(400, 'OPTION', `maxWaitMs ${shown(maxWaitMs)} goes with verb reserve, not with ${verb}`)
  }
  const { key, cost = 1, plan } = fields
  checkPlan(plan)
  // One literal, here and in `acquire`: putting it together from pieces took longer than the
  // decision.
  const request = { verb, key, cost, plan, maxWaitMs } as DecisionRequest
  limiter.check(request)
  return { limiter, request }
}

export function acquireTask(limiters: Limiters, body: unknown, signal: AbortSignal): Task<AcquireRequest> {
  const fields = onlyFields(body, ACQUIRE_FIELDS, 'acquire')
  const limiter = limiterNamed(limiters, fields.limiter)
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = fields
  if (typeof timeoutMs !== 'number' || !(timeoutMs >= 0 && timeoutMs <= MAX_TIMEOUT_MS)) {
    throw new BadRequest(400, 'TIMEOUT_MS', `timeoutMs ${shown(timeoutMs)} must be milliseconds from 0 to ${MAX_TIMEOUT_MS}`)
  }
  const { key, cost = 1, plan } = fields
  checkPlan(plan)
  const request = { key, cost, plan, timeoutMs, signal } as AcquireRequest
  limiter.check({ key: request.key, cost: request.cost, plan: request.plan, maxWaitMs: undefined })
  return { limiter, request }
}

export function limiterNamed(limiters: Limiters, name: unknown): RunningLimiter {
  if (typeof name !== 'string') throw new BadRequest(400, 'LIMITER', `limiter ${shown(name)} must be the name of a limiter`)
  const limiter = limiters.get(name)
  if (limiter !== undefined) return limiter
  throw new BadRequest(404, 'LIMITER', `there is no limiter ${shown(name)}`)
}

export function checkPlan(plan: unknown): void {
  if (plan !== undefined && typeof plan !== 'string') throw new BadRequest(400, 'CONFIG', `plan ${shown(plan)} must be the name of a plan`)
}

export function onlyFields(body: unknown, known: readonly string[], what: string): Fields {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new BadRequest(400, 'BODY', `${what} ${shown(body)} must be an object of ${known.join(', ')}`)
  }
  for (const name of Object.keys(body)) {
    if (known.includes(name)) continue
    throw new BadRequest(400, 'OPTION', `${shown(name)} is not an option of ${what}: there is ${known.join(', ')}`)
  }
  return body as Fields
}
