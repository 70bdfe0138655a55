/** The handlers of the paths. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { DescriptorRule } from '../config/config.ts'
import { type Counting, shouldRateLimit } from '../grpc/should-rate-limit.ts'
import type { HeldBytes } from '../held-bytes.ts'
import type { LiveHub } from '../live/hub.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { answerPage } from '../page/answer-page.ts'
import type { Page } from '../page/page.ts'
import type { Limiters } from '../running/limiters.ts'
import type { Readiness } from '../running/readiness.ts'
import type { Answer, DecisionRequest, MaybePromise, Refunded } from '../running/request.ts'
import type { RunningLimiter } from '../running/running-limiter.ts'
import { SluiceError } from '../sluice.ts'
import type { Tokens } from '../tokens.ts'
import { answerJson } from './answer-json.ts'
import { jsonBody } from './body.ts'
import { descriptorsIn, responseJson } from './descriptors.ts'
import { acquireTask, batchIn, decisionTask, limiterNamed, type Task, taskOfBatch } from './input.ts'
import { openApi } from './openapi.ts'
import { permitTask } from './permits.ts'
import { BadRequest, NO_ANSWER, type Problem, problemOf } from './problem.ts'
import type { Client } from './requests.ts'
import { chargeTask, settleTask } from './settle.ts'

export interface Reply {
  readonly status: number
  /** Becomes JSON, unless it is text or bytes already. */
  readonly body: unknown
  readonly type: string
  readonly headers?: Readonly<Record<string, string>>
}

/** The arguments of a handler. */
export interface Call {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly path: string
  /** The parts of the path that stand for something. */
  readonly params: readonly string[]
  readonly query: URLSearchParams
  readonly client: Client
}

export interface Context {
  readonly limiters: Limiters
  readonly counting: Counting
  readonly metrics: Metrics
  readonly hub: LiveHub
  readonly held: HeldBytes
  readonly readiness: Readiness
  /** Undefined: there is none. Empty: it was not built. */
  readonly page: Page | undefined
  /** The tokens that may write; undefined: all callers may. */
  readonly tokens: Tokens | undefined
  /** The tokens that may only read; undefined: all callers may. */
  readonly readTokens: Tokens | undefined
}

/** Undefined: it has answered already. */
export type Handler = (context: Context, call: Call) => MaybePromise<Reply | undefined>

/** `:` stands for one part of the path. Where there is GET, HEAD is the same without the body. */
export const ROUTES: Readonly<Record<string, Readonly<Record<string, Handler>>>> = {
  '/': { GET: page },
  '/assets/:': { GET: page },
  '/v1/decide': { POST: decide },
  '/v1/acquire': { POST: acquire },
  '/json': { POST: askDescriptors },
  '/v1/charge': { POST: charge },
  '/v1/settle': { POST: settle },
  '/v1/release': { POST: release },
  '/v1/renew': { POST: renew },
  '/v1/limiters': { GET: listLimiters },
  '/v1/limiters/:/keys/:': { GET: peekKey, DELETE: resetKey },
  '/v1/live': { GET: live },
  '/healthz': { GET: () => json(200, { status: 'ok' }) },
  '/readyz': { GET: ready },
  '/metrics': { GET: metricsText },
  '/openapi.json': { GET: () => json(200, openApi) },
}

export function json(status: number, body: unknown): Reply {
  return { status, body, type: 'application/json' }
}

async function decide({ limiters, held }: Context, { request }: Call): Promise<Reply> {
  const body = await jsonBody(request, held)
  const batch = batchIn(body)
  if (batch === undefined) {
    const { limiter, request: asked } = decisionTask(limiters, body)
    return json(200, answerJson(await limiter.decide(asked)))
  }
  // All are checked before the first is made.
  const tasks = batch.map((item, k) => taskOfBatch(limiters, item, k))
  const decided = tasks.map(decidedOrWhy)
  // In memory all are there already, and waiting for each would take longer than it took.
  const isPromised = decided.some((each) => each instanceof Promise)
  const answers = isPromised ? await Promise.all(decided) : (decided as Awaited<(typeof decided)[number]>[])
  return json(200, `{"decisions":[${answers.map(answerJson).join()}]}`)
}

/** One that fails does not take the answers of the others with it: they were charged. */
function decidedOrWhy({ limiter, request }: Task<DecisionRequest>): MaybePromise<Answer | Refunded | { error: Problem }> {
  try {
    const decided = limiter.decide(request)
    return decided instanceof Promise ? decided.catch(failure) : decided
  } catch (error) {
    return failure(error)
  }
}

function failure(error: unknown): { error: Problem } {
  return { error: problemOf(error) }
}

async function acquire({ limiters, held }: Context, { request, client }: Call): Promise<Reply> {
  const body = await jsonBody(request, held)
  const { limiter, request: asked } = acquireTask(limiters, body, client.gone)
  return json(200, await limiter.acquire(asked))
}

/** As Envoy's own service: a refusal is a 429 here. */
async function askDescriptors({ counting, held }: Context, { request }: Call): Promise<Reply> {
  const asked = descriptorsIn(await jsonBody(request, held))
  const answer = await shouldRateLimit(counting, asked)
  return json(answer.overall_code === 'OVER_LIMIT' ? 429 : 200, responseJson(answer))
}

async function charge({ limiters, held }: Context, { request }: Call): Promise<Reply> {
  const { limiter, request: used } = chargeTask(limiters, await jsonBody(request, held))
  return json(200, answerJson(await limiter.charge(used)))
}

async function settle({ limiters, held }: Context, { request }: Call): Promise<Reply> {
  const { limiter, request: used } = settleTask(limiters, await jsonBody(request, held))
  return json(200, await limiter.settle(used))
}

async function release({ limiters, held }: Context, { request }: Call): Promise<Reply> {
  const { limiter, request: lent } = permitTask(limiters, await jsonBody(request, held), 'release')
  return json(200, await limiter.release(lent))
}

async function renew({ limiters, held }: Context, { request }: Call): Promise<Reply> {
  const { limiter, request: lent } = permitTask(limiters, await jsonBody(request, held), 'renew')
  return json(200, await limiter.renew(lent))
}

function listLimiters({ limiters }: Context): Reply {
  const domains = [...limiters.domains].map(([name, { headers, descriptors }]) => {
    return { name, headers, rules: descriptors.flatMap((rule) => describedRules(limiters, rule)) }
  })
  return json(200, { limiters: limiters.named().map(described), domains })
}

/** Every rule of a tree that decides something. */
function describedRules(limiters: Limiters, rule: DescriptorRule): object[] {
  const { title, limiter, unlimited, denied, charge, shadow, descriptors } = rule
  const below = descriptors.flatMap((each) => describedRules(limiters, each))
  if (limiter === undefined && !unlimited && !denied) return below
  const limit = limiter?.limits.default ?? null
  const store = limiter === undefined ? null : limiters.ofRule(limiter).health.state
  return [{ rule: title, limit, unlimited, denied, charge, shadow, options: limiter?.options ?? {}, store }, ...below]
}

function described({ config, health, waiting, inflight, limitsNow }: RunningLimiter) {
  const { name, limits, plans, options, follow = null, shadow } = config
  const now = Object.fromEntries(limitsNow)
  return { name, limits, plans, options, follow, now, shadow, waiting, inflight: inflight ?? null, store: health.state }
}

async function peekKey({ limiters }: Context, { params, query }: Call): Promise<Reply> {
  const [name, key] = params as [string, string]
  const limiter = limiterNamed(limiters, name)
  const request = {
    verb: 'peek',
    key,
    cost: costIn(query),
    plan: query.get('plan') ?? undefined,
    maxWaitMs: undefined,
  } as const
  limiter.check(request)
  return json(200, await limiter.decide(request))
}

function costIn(query: URLSearchParams): number {
  const unknown = [...query.keys()].find((name) => name !== 'cost' && name !== 'plan')
  if (unknown !== undefined) throw new BadRequest(400, 'OPTION', `${JSON.stringify(unknown)} is not an option here: there is cost, plan`)
  const text = query.get('cost') ?? '1'
  if (/^\d{1,10}$/.test(text)) return Number(text)
  throw new BadRequest(400, 'COST', `cost ${JSON.stringify(text)} must be a whole number from 0 to 1,000,000,000`)
}

async function resetKey({ limiters }: Context, { params }: Call): Promise<Reply> {
  const [name, key] = params as [string, string]
  const limiter = limiterNamed(limiters, name)
  limiter.check({ key, cost: 0, plan: undefined, maxWaitMs: undefined })
  await limiter.reset(key)
  return { status: 204, body: undefined, type: '' }
}

function page({ page }: Context, { request, path }: Call): Promise<Reply> {
  return answerPage(page, path, request)
}

function live({ hub, readiness }: Context, { request, response }: Call): Reply | undefined {
  if (readiness.isStopping) throw stopping()
  if (request.method === 'HEAD') return { status: 200, body: '', type: 'text/event-stream' }
  hub.join(response)
  return undefined
}

function ready({ readiness }: Context): Reply {
  if (readiness.isStopping) throw stopping()
  if (readiness.isReady) return json(200, { status: 'ready' })
  throw new SluiceError('STORE', NO_ANSWER)
}

function stopping(): BadRequest {
  return new BadRequest(503, 'STOPPING', 'the service is stopping')
}

async function metricsText({ metrics }: Context): Promise<Reply> {
  return { status: 200, body: await metrics.registry.metrics(), type: metrics.registry.contentType }
}
