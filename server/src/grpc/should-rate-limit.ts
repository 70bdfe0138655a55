/**
 * Envoy's question: may a request that is described so go on? Each descriptor is counted by itself;
 * one that is over its limit refuses all.
 */
import { type DescriptorRule, titleOf } from '../config/config.ts'
import type { Limiters } from '../running/limiters.ts'
import type { Answer, DecisionRequest } from '../running/request.ts'
import type { RunningLimiter } from '../running/running-limiter.ts'
import { boundedKey, type Limit, MAX_PERMITS, shown } from '../sluice.ts'
import { keyOf, ruleFor } from './find-rule.ts'
import { type Counted, headersOf } from './headers.ts'
import { InvalidRequest } from './invalid-request.ts'
import type { Descriptor, DescriptorStatus, RateLimitRequest, RateLimitResponse } from './messages.ts'
import type { Overrides } from './overrides.ts'
import type { Uncharged } from './uncharged.ts'
import { perUnit } from './units.ts'

const MAX_DESCRIPTORS = 1_000
const MAX_UINT32 = 4_294_967_295

const NO_LIMIT: Result = { status: { code: 'OK', limit_remaining: 0 } }
const UNLIMITED: Result = { status: { code: 'OK', limit_remaining: MAX_UINT32 } }
/** None at all is allowed: nothing needs to be counted for that. */
const NONE_ALLOWED: Result = { status: { code: 'OVER_LIMIT', limit_remaining: 0 } }

interface Result {
  readonly status: DescriptorStatus
  /** Undefined where nothing was counted. */
  readonly counted?: Counted
}

type Job = () => Result | Promise<Result>

/** What descriptors are counted by. */
export interface Counting {
  readonly limiters: Limiters
  readonly overrides: Overrides
  readonly uncharged: Uncharged
}

export async function shouldRateLimit(counting: Counting, request: RateLimitRequest): Promise<RateLimitResponse> {
  const { limiters } = counting
  // All are checked before the first is counted.
  const jobs = jobsOf(counting, request)
  const { headers = 'none' } = limiters.domain(request.domain) ?? {}
  const results = await Promise.all(jobs.map((job) => job()))
  const statuses = results.map(({ status }) => status)
  const isOver = statuses.some(({ code }) => code === 'OVER_LIMIT')
  const counted = results.map((result) => result.counted).filter((each) => each !== undefined)
  return { overall_code: isOver ? 'OVER_LIMIT' : 'OK', statuses, response_headers_to_add: headersOf(headers, counted) }
}

function jobsOf(counting: Counting, { domain, descriptors, hits_addend }: RateLimitRequest): Job[] {
  if (domain === '') throw new InvalidRequest('domain "" must not be empty')
  if (descriptors.length === 0 || descriptors.length > MAX_DESCRIPTORS) {
    throw new InvalidRequest(`descriptors: ${descriptors.length} must be from 1 to ${MAX_DESCRIPTORS}`)
  }
  const rules = counting.limiters.domain(domain)?.descriptors
  return descriptors.map((descriptor, k) => {
    checkEntries(descriptor, k)
    const hits = hitsOf(descriptor, hits_addend, k)
    return rules === undefined ? () => NO_LIMIT : jobOf(counting, domain, rules, descriptor, hits)
  })
}

function jobOf(counting: Counting, domain: string, rules: readonly DescriptorRule[], descriptor: Descriptor, hits: number): Job {
  const { limiters, overrides, uncharged } = counting
  const { entries, limit } = descriptor
  const rule = ruleFor(rules, entries)
  const countedBy = (limiter: RunningLimiter) => counted(limiter, descriptor, hits, rule?.charge === true, uncharged)
  if (limit !== null) {
    const limiter = overrides.limiterFor(domain, limit)
    if (limiter === undefined) return () => (limiters.shadow ? NO_LIMIT : NONE_ALLOWED)
    return () => countedBy(limiter)
  }
  if (rule?.unlimited) return () => UNLIMITED
  if (rule?.denied) return () => denied(limiters, rule, descriptor, hits)
  const config = rule?.limiter
  return config === undefined ? () => NO_LIMIT : () => countedBy(limiters.ofRule(config))
}

/** Only calls that would have taken something are counted. */
function denied(limiters: Limiters, rule: DescriptorRule, { entries, is_negative_hits }: Descriptor, hits: number): Result {
  if (!is_negative_hits && hits > 0) limiters.countDenied(rule, boundedKey(keyOf(entries)))
  return rule.shadow || is_negative_hits ? NO_LIMIT : NONE_ALLOWED
}

/** `isCharged`: hits that the descriptor itself brings have been used already. */
async function counted(
  limiter: RunningLimiter,
  descriptor: Descriptor,
  hits: number,
  isCharged: boolean,
  uncharged: Uncharged,
): Promise<Result> {
  const { entries, is_negative_hits, hits_addend } = descriptor
  const key = boundedKey(keyOf(entries))
  const answer =
    isCharged && hits_addend !== null && hits > 0 && !is_negative_hits
      ? await limiter.charge({ key, cost: hits, plan: undefined })
      : await decided(limiter, key, hits, is_negative_hits)
  if (!isCharged && hits_addend !== null) uncharged.note(limiter, hits, answer)
  const passes = answer.allowed || is_negative_hits
  const status = statusOf(answer, passes, { ...perUnit(limiter.config.limits.default as Limit), name: headerText(titleOf(limiter.config)) })
  return { status, counted: { answer, passes, scope: limiter.scope } }
}

/**
 * No hits: a question whether one more would pass. Negative hits are given back, which refuses no
 * call.
 */
async function decided(limiter: RunningLimiter, key: string, hits: number, isNegative: boolean): Promise<Answer> {
  const request: DecisionRequest = { verb: 'consume', key, cost: hits, plan: undefined, maxWaitMs: undefined }
  if (isNegative && hits > 0) await limiter.decide({ ...request, verb: 'refund' })
  const asks = isNegative || hits === 0
  return (await limiter.decide(asks ? { ...request, verb: 'peek', cost: 1 } : request)) as Answer
}

/**
 * Envoy writes the name of a limit between quotes into a header. It comes from the file: what a
 * client sent would come back to it there.
 */
function headerText(title: string): string {
  return title.replaceAll(/[^ !#-[\]-~]/g, '_')
}

function statusOf(
  { remaining, resetAfterMs }: Answer,
  passes: boolean,
  limit: NonNullable<DescriptorStatus['current_limit']>,
): DescriptorStatus {
  const resetUs = Math.round(resetAfterMs * 1000)
  return {
    code: passes ? 'OK' : 'OVER_LIMIT',
    current_limit: limit,
    limit_remaining: Math.min(remaining, MAX_UINT32),
    duration_until_reset: { seconds: Math.floor(resetUs / 1_000_000), nanos: (resetUs % 1_000_000) * 1000 },
  }
}

function checkEntries({ entries }: Descriptor, place: number): void {
  if (entries.length === 0) throw new InvalidRequest(`descriptors[${place}] must have entries`)
  const nameless = entries.findIndex(({ key }) => key === '')
  if (nameless >= 0) throw new InvalidRequest(`descriptors[${place}].entries[${nameless}]: key "" must not be empty`)
}

/**
 * A descriptor's own hits go before those of the request, of which 0 means that nobody said
 * anything: one.
 */
function hitsOf({ hits_addend }: Descriptor, ofRequest: number, place: number): number {
  const hits = hits_addend === null ? ofRequest || 1 : Number(hits_addend.value)
  if (hits <= MAX_PERMITS) return hits
  throw new InvalidRequest(`descriptors[${place}]: hits_addend ${shown(hits)} must be at most ${MAX_PERMITS}`)
}
