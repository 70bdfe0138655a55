/**
 * The types of limiters and decisions. Nothing here runs: `npm run typecheck` compiles it, and it
 * compiles only if the types are right. A line after `@ts-expect-error` must be refused;
 * `expectType<T>()(value)` asks for exactly `T`.
 */
import {
  type AsyncStore,
  createLimiter,
  type Decision,
  type DecisionPart,
  fixedWindow,
  gcra,
  type Limiter,
  leakyBucket,
  memoryStore,
  type Outcome,
  type Settleable,
  type Store,
  type SyncLimiter,
  type SyncStore,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { type RedisSender, redisStore } from '../../src/stores/redis/index.ts'
import { sharedStore } from '../../src/stores/shared-memory/index.ts'
import { fakeClock } from '../../src/testing/index.ts'

/** Exactly the same type: assignable both ways is not enough, because `any` and `never` are. */
type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

/** The mark is missing if the types differ, and then the call does not compile. */
function expectType<Wanted>() {
  return <Actual>(_value: Actual, ..._mark: Equal<Actual, Wanted> extends true ? [] : ['not this type']) => undefined
}

declare const client: RedisSender
declare const key: string

export function theHelperTellsTypesApart() {
  expectType<number>()(1 as number)
  // @ts-expect-error a wider type
  expectType<number | string>()(1 as number)
  // @ts-expect-error a narrower type
  expectType<1>()(1 as number)
  // biome-ignore lint/suspicious/noExplicitAny: it must not hide behind any
  const anything = 1 as any
  // @ts-expect-error any is not number
  expectType<number>()(anything)
}

// What limits are called

export function aSingleLimitIsCalledDefault() {
  const limiter = createLimiter(gcra({ rate: '10/s', burst: 20 }))
  const decision = limiter.consume(key)
  expectType<'default'>()(decision.policy)
  expectType<Readonly<Record<'default', DecisionPart>>>()(decision.parts)
  limiter.consume({ default: key }, { default: 3 })
  // @ts-expect-error there is no such limit
  decision.parts.burst
  // @ts-expect-error there is no such limit
  limiter.consume({ burst: key })
  // @ts-expect-error there is no such limit
  limiter.consume(key, { burst: 1 })
}

export function severalLimitsHaveTheirNamesEverywhere() {
  const limiter = createLimiter({ requests: gcra({ rate: '10/s', burst: 20 }), tokens: tokenBucket({ capacity: 1_000, refill: '1000/h' }) })
  const decision = limiter.consume({ requests: 'u1', tokens: 't9' }, { requests: 1, tokens: 500 })
  expectType<'requests' | 'tokens'>()(decision.policy)
  expectType<DecisionPart>()(decision.parts.requests)
  expectType<DecisionPart>()(decision.parts.tokens)
  expectType<Outcome>()(decision.parts.tokens.outcome)
  // @ts-expect-error there is no such limit
  decision.parts.token
  // @ts-expect-error policy is never this
  decision.policy === 'token'
}

export function aWrongNameIsRefusedByEveryVerb() {
  const limiter = createLimiter({ user: gcra({ rate: '10/s', burst: 20 }), tenant: gcra({ rate: '100/s', burst: 200 }) })
  const keys = { user: 'u1', tenant: 't9' }
  // @ts-expect-error a misspelt name in a key
  limiter.tryAcquire({ user: 'u1', tenent: 't9' })
  // @ts-expect-error a missing name in a key
  limiter.consume({ user: 'u1' })
  // @ts-expect-error one name too many in a key
  limiter.peek({ ...keys, other: 'x' })
  // @ts-expect-error a misspelt name in a key
  limiter.reserve({ user: 'u1', tenent: 't9' })
  // @ts-expect-error a misspelt name in a key
  limiter.refund({ user: 'u1', tenent: 't9' })
  // @ts-expect-error a misspelt name in a key
  limiter.reset({ user: 'u1', tenent: 't9' })
  // @ts-expect-error a misspelt name in a cost
  limiter.tryAcquire(keys, { user: 1, tenent: 1 })
  // @ts-expect-error a missing name in a cost
  limiter.consume(keys, { user: 1 })
  // @ts-expect-error one name too many in a cost
  limiter.peek(keys, { user: 1, tenant: 1, other: 1 })
  // @ts-expect-error a misspelt name in a cost
  limiter.reserve(keys, { user: 1, tenent: 1 })
  // @ts-expect-error a misspelt name in a cost
  limiter.refund(keys, { user: 1, tenent: 1 })
  // @ts-expect-error a key is a string
  limiter.consume(42)
  // @ts-expect-error a cost is a number
  limiter.consume(key, '1')
}

// Who waits for a promise

export function withoutAStoreEveryVerbAnswersAtOnce() {
  const limiter = createLimiter(gcra({ rate: '10/s', burst: 20 }))
  expectType<boolean>()(limiter.tryAcquire(key))
  expectType<Decision<'default'> & Settleable<'default', SyncStore>>()(limiter.consume(key))
  expectType<void>()(limiter.consume(key).settle(2))
  expectType<void>()(limiter.consume(key).cancel())
  expectType<Decision<'default'>>()(limiter.charge(key, 2))
  expectType<void>()(limiter.settle(key, 2, { of: limiter.consume(key) }))
  expectType<Decision<'default'>>()(limiter.peek(key))
  const reservation = limiter.reserve(key)
  expectType<'default'>()(reservation.policy)
  expectType<void>()(reservation.cancel())
  expectType<void>()(limiter.refund(key))
  expectType<void>()(limiter.reset(key))
  expectType<void>()(limiter.update(gcra({ rate: '1/s', burst: 1 })))
  expectType<void>()(limiter.close())
}

export function memoryPassedByHandAndSharedMemoryAnswerAtOnceToo() {
  const inMemory = createLimiter(gcra({ rate: '10/s', burst: 20 }), { store: memoryStore(), clock: fakeClock() })
  expectType<boolean>()(inMemory.tryAcquire(key))
  expectType<Decision<'default'> & Settleable<'default', SyncStore>>()(inMemory.consume(key))
  const shared = createLimiter(gcra({ rate: '10/s', burst: 20 }), { name: 'api', store: sharedStore({ maxKeys: 10 }) })
  expectType<boolean>()(shared.tryAcquire(key))
  expectType<Decision<'default'> & Settleable<'default', SyncStore>>()(shared.consume(key))
}

export async function onRedisEveryVerbAnswersWithAPromise() {
  const limiter = createLimiter({ a: gcra({ rate: '10/s', burst: 20 }) }, { name: 'api', store: redisStore(client) })
  expectType<Promise<Decision<'a'> & Settleable<'a', AsyncStore>>>()(limiter.consume(key))
  expectType<Promise<void>>()((await limiter.consume(key)).settle({ a: 2 }))
  expectType<Promise<void>>()((await limiter.consume(key)).cancel())
  expectType<Promise<Decision<'a'>>>()(limiter.charge(key, { a: 2 }))
  // @ts-expect-error a misspelt name in what it cost
  void (await limiter.consume(key)).settle({ b: 2 })
  expectType<Promise<Decision<'a'>>>()(limiter.peek(key))
  const reservation = await limiter.reserve(key)
  expectType<'a'>()(reservation.policy)
  expectType<Promise<void>>()(reservation.cancel())
  expectType<Promise<void>>()(limiter.refund(key))
  expectType<Promise<void>>()(limiter.reset(key))
  expectType<void>()(limiter.update({ a: gcra({ rate: '1/s', burst: 1 }) }))
  expectType<void>()(limiter.close())
  // @ts-expect-error a promise is always true: it must be awaited
  limiter.consume(key).allowed
}

export async function onlyAStoreThatAnswersAtOnceHasTryAcquire(store: Store) {
  const limit = gcra({ rate: '10/s', burst: 20 })
  const redis = createLimiter(limit, { name: 'api', store: redisStore(client) })
  // @ts-expect-error a promise is always truthy, so this would refuse no call
  if (!redis.tryAcquire(key)) return
  // @ts-expect-error nor is it there to be awaited
  if (!(await redis.tryAcquire(key))) return
  const either = createLimiter(limit, { name: 'api', store })
  // @ts-expect-error the store may answer later
  if (!either.tryAcquire(key)) return
  const chosen = createLimiter(limit, { name: 'api', store: key === '' ? redisStore(client) : memoryStore() })
  // @ts-expect-error the store may answer later
  if (!chosen.tryAcquire(key)) return
  const any: Limiter<typeof limit> = createLimiter(limit)
  // @ts-expect-error what every limiter has
  if (!any.tryAcquire(key)) return
}

export async function aStoreThatMayBeEitherAnswersEither(store: Store) {
  const limiter = createLimiter(gcra({ rate: '10/s', burst: 20 }), { name: 'api', store })
  expectType<void | Promise<void>>()(limiter.reset(key))
  expectType<boolean>()((await limiter.consume(key)).allowed)
}

export function aLimiterCanBeNamedAsAType() {
  const single: SyncLimiter = createLimiter(gcra({ rate: '10/s', burst: 20 }))
  const any: Limiter = single
  const remote: Limiter<{ a: ReturnType<typeof gcra> }, AsyncStore, never> = createLimiter(
    { a: gcra({ rate: '10/s', burst: 20 }) },
    { name: 'api', store: redisStore(client) },
  )
  return [single, any, remote]
}

// Plans

export function onlyThePlansThatThereAre() {
  const limiter = createLimiter(
    { burst: gcra({ rate: '10/s', burst: 20 }), daily: fixedWindow({ limit: 5_000, window: '1d' }) },
    {
      plans: {
        pro: { burst: gcra({ rate: '100/s', burst: 200 }), daily: fixedWindow({ limit: 1e6, window: '1d' }) },
        free: { burst: gcra({ rate: '1/s', burst: 2 }), daily: fixedWindow({ limit: 100, window: '1d' }) },
      },
    },
  )
  limiter.tryAcquire(key, 1, { plan: 'pro' })
  limiter.consume(key, 1, { plan: 'free' })
  limiter.peek(key, 1, {})
  limiter.reserve(key, 1, { plan: 'pro', maxWaitMs: 100 })
  limiter.refund(key, 1, { plan: 'pro' })
  // @ts-expect-error a call is given back by its decision
  limiter.refund(key, 1, { plan: 'pro', atMs: 0 })
  // @ts-expect-error no such plan
  limiter.tryAcquire(key, 1, { plan: 'por' })
  // @ts-expect-error no such plan
  limiter.consume(key, 1, { plan: 'por' })
  // @ts-expect-error no such plan
  limiter.peek(key, 1, { plan: 'por' })
  // @ts-expect-error no such plan
  limiter.reserve(key, 1, { plan: 'por' })
  // @ts-expect-error no such plan
  limiter.refund(key, 1, { plan: 'por' })
  // @ts-expect-error no such option
  limiter.consume(key, 1, { paln: 'pro' })
}

export function whereThereAreNoPlansNoneCanBeGiven() {
  const limiter = createLimiter(gcra({ rate: '10/s', burst: 20 }))
  // @ts-expect-error there are no plans
  limiter.consume(key, 1, { plan: 'pro' })
  // @ts-expect-error there are no plans
  limiter.tryAcquire(key, 1, { plan: 'pro' })
  const remote = createLimiter(gcra({ rate: '10/s', burst: 20 }), { name: 'api', store: redisStore(client) })
  // @ts-expect-error there are no plans
  remote.consume(key, 1, { plan: 'pro' })
}

export function aPlanHasTheLimitersLimits() {
  const burst = gcra({ rate: '10/s', burst: 20 })
  // @ts-expect-error another algorithm
  createLimiter({ burst }, { plans: { pro: { burst: tokenBucket({ capacity: 20, refill: '10/s' }) } } })
  // @ts-expect-error another name
  createLimiter({ burst }, { plans: { pro: { brust: burst } } })
  // @ts-expect-error a limit is missing
  createLimiter({ burst, daily: fixedWindow({ limit: 5, window: '1d' }) }, { plans: { pro: { burst } } })
  // @ts-expect-error another algorithm, of a single limit
  createLimiter(burst, { plans: { pro: tokenBucket({ capacity: 20, refill: '10/s' }) } })
  createLimiter(burst, { plans: { pro: gcra({ rate: '99/s', burst: 1 }) } }).consume(key, 1, { plan: 'pro' })
}

// Updates

export function anUpdateKeepsNamesAndAlgorithms() {
  const limiter = createLimiter({ burst: gcra({ rate: '10/s', burst: 20 }), daily: fixedWindow({ limit: 5_000, window: '1d' }) })
  const burst = gcra({ rate: '1/s', burst: 2 })
  const daily = fixedWindow({ limit: 1, window: '1h', anchor: 'first' })
  limiter.update({ burst, daily })
  // @ts-expect-error a limit is missing
  limiter.update({ burst })
  // @ts-expect-error a limit too many
  limiter.update({ burst, daily, hourly: daily })
  // @ts-expect-error another name
  limiter.update({ burst, dayly: daily })
  // @ts-expect-error another algorithm
  limiter.update({ burst: tokenBucket({ capacity: 2, refill: '1/s' }), daily })
  // @ts-expect-error one limit is not several
  limiter.update(burst)
}

export function anUpdateOfASingleLimitKeepsItsAlgorithm() {
  const limiter = createLimiter(slidingLog({ limit: 5, window: '1s' }))
  limiter.update(slidingLog({ limit: 6, window: '500ms' }))
  // @ts-expect-error another algorithm
  limiter.update(slidingWindow({ limit: 6, window: '500ms' }))
  // @ts-expect-error several limits are not one
  limiter.update({ default: slidingLog({ limit: 6, window: '500ms' }) })
  // @ts-expect-error plain data is not a limit: limitFrom revives it
  limiter.update({ type: 'slidingLog', limit: 6, window: '500ms' })
}

export function anUpdateOfPlansNamesThemAll() {
  const limiter = createLimiter(gcra({ rate: '10/s', burst: 20 }), {
    plans: { pro: gcra({ rate: '100/s', burst: 200 }), free: gcra({ rate: '1/s', burst: 2 }) },
  })
  const limit = gcra({ rate: '1/s', burst: 2 })
  limiter.update(limit, { pro: limit, free: limit })
  // @ts-expect-error a plan is missing
  limiter.update(limit, { pro: limit })
  // @ts-expect-error a plan that there is not
  limiter.update(limit, { pro: limit, free: limit, team: limit })
  // @ts-expect-error another algorithm
  limiter.update(limit, { pro: limit, free: tokenBucket({ capacity: 2, refill: '1/s' }) })
}

// Decisions

export function aDecisionNarrowsOnAllowed(decision: Decision<'a'>) {
  if (decision.allowed) expectType<'allowed'>()(decision.outcome)
  else expectType<'limited' | 'impossible'>()(decision.outcome)
}

export function aDecisionNarrowsOnItsOutcome(decision: Decision<'a'>) {
  switch (decision.outcome) {
    case 'allowed':
      return expectType<true>()(decision.allowed)
    case 'limited':
    case 'impossible':
      return expectType<false>()(decision.allowed)
    default:
      return expectType<never>()(decision)
  }
}

export function aReservationNarrowsToo() {
  const reservation = createLimiter(gcra({ rate: '10/s', burst: 20 })).reserve(key)
  if (reservation.allowed) expectType<'allowed'>()(reservation.outcome)
}

export function aDecisionCannotBeChanged(decision: Decision<'a'>) {
  // @ts-expect-error readonly
  decision.remaining = 5
  // @ts-expect-error readonly
  decision.parts.a.remaining = 5
}

export function tryAcquireIsABooleanAndNothingElse() {
  const limiter = createLimiter(gcra({ rate: '10/s', burst: 20 }))
  // @ts-expect-error tryAcquire tells no more than yes or no
  limiter.tryAcquire(key).remaining
  if (limiter.tryAcquire(key, 2)) return 'in'
  return 'out'
}

// What people write

export function ratesAreCheckedAsTheyAreTyped() {
  gcra({ rate: '10/s', burst: 1 })
  gcra({ rate: '100/min', burst: 1 })
  gcra({ rate: '5/10s', burst: 1 })
  gcra({ rate: '5/0.5ms', burst: 1 })
  gcra({ rate: { permits: 5, per: '10s' }, burst: 1 })
  tokenBucket({ capacity: 1, refill: '1/us' })
  leakyBucket({ capacity: 1, leak: '1/d' })
  // @ts-expect-error no such unit
  gcra({ rate: '10/x', burst: 1 })
  // @ts-expect-error no unit
  gcra({ rate: '10', burst: 1 })
  // @ts-expect-error no number
  gcra({ rate: 'ten/s', burst: 1 })
  // @ts-expect-error a rate is not a number
  gcra({ rate: 10, burst: 1 })
  // @ts-expect-error no such unit
  tokenBucket({ capacity: 1, refill: '10/sec' })
  // @ts-expect-error no such unit
  leakyBucket({ capacity: 1, leak: '10/5x' })
  // @ts-expect-error no such unit
  gcra({ rate: { permits: 1, per: '5x' }, burst: 1 })
  // @ts-expect-error a period has a unit
  gcra({ rate: { permits: 5, per: 1_000 }, burst: 1 })
  // @ts-expect-error a period has a unit
  tokenBucket({ capacity: 1, refill: { permits: 5, per: 60 } })
  // @ts-expect-error a period has a unit
  leakyBucket({ capacity: 1, leak: { permits: 5, per: 60 } })
}

export function durationsAreCheckedAsTheyAreTyped() {
  fixedWindow({ limit: 1, window: '500ms', anchor: 'first' })
  // @ts-expect-error a window has a unit
  fixedWindow({ limit: 5, window: 3600 })
  // @ts-expect-error a window has a unit
  slidingWindow({ limit: 5, window: 3600 })
  // @ts-expect-error a window has a unit
  slidingLog({ limit: 5, window: 3600 })
  slidingWindow({ limit: 1, window: '5min', slots: 60 })
  slidingLog({ limit: 1, window: '1h' })
  // @ts-expect-error no such unit
  fixedWindow({ limit: 1, window: '10x' })
  // @ts-expect-error no such anchor
  fixedWindow({ limit: 1, window: '1d', anchor: 'last' })
  // @ts-expect-error no unit
  slidingWindow({ limit: 1, window: '10' })
  // @ts-expect-error no such unit
  slidingLog({ limit: 1, window: '1hour' })
}

export function unknownAndMissingOptionsAreRefused() {
  // @ts-expect-error no such option
  gcra({ rate: '10/s', burst: 1, slots: 3 })
  // @ts-expect-error the burst is missing
  gcra({ rate: '10/s' })
  // @ts-expect-error no such option
  createLimiter(gcra({ rate: '10/s', burst: 20 }), { maxAhead: 5 })
  // @ts-expect-error not a limit
  createLimiter({ type: 'gcra', rate: '10/s', burst: 20 })
  // @ts-expect-error not limits
  createLimiter({ a: { type: 'gcra' } })
  // @ts-expect-error not a store
  createLimiter(gcra({ rate: '10/s', burst: 20 }), { store: client })
  // @ts-expect-error not a clock
  createLimiter(gcra({ rate: '10/s', burst: 20 }), { clock: { now: () => 0 } })
}
