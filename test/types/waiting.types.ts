/** The types of waiting. Compiled, not run. */
import { type Acquired, type AsyncStore, acquireSync, createLimiter, fixedWindow, gcra, type SyncStore } from '../../src/index.ts'

/** Exactly this type, neither wider nor narrower. */
function expectType<Expected>() {
  return <Given>(_: Given, ..._same: [Given] extends [Expected] ? ([Expected] extends [Given] ? [] : [never]) : [never]) => {}
}

const burst = gcra({ rate: '10/s', burst: 20 })
const daily = fixedWindow({ limit: 5_000, window: '1d' })
const { signal } = new AbortController()

export function acquireIsAPromiseOnEveryStore(sync: SyncStore, remote: AsyncStore) {
  expectType<Promise<Acquired<'default'>>>()(createLimiter(burst).acquire('k'))
  expectType<Promise<Acquired<'default'>>>()(createLimiter(burst, { store: sync }).acquire('k'))
  expectType<Promise<Acquired<'default', AsyncStore>>>()(createLimiter(burst, { name: 'api', store: remote }).acquire('k', { cost: 2 }))
}

export async function whatIsAcquiredIsAllowed() {
  const acquired = await createLimiter({ burst, daily }).acquire('k')
  expectType<true>()(acquired.allowed)
  expectType<'allowed'>()(acquired.outcome)
  expectType<number>()(acquired.waitedMs)
  expectType<'burst' | 'daily'>()(acquired.policy)
}

export function tryAcquireNeverWaits() {
  const mem = createLimiter(burst)
  expectType<boolean>()(mem.tryAcquire('k'))
  expectType<boolean>()(mem.tryAcquire('k', 2, {}))
  // @ts-expect-error acquire waits
  if (!mem.tryAcquire('k', 1, { timeoutMs: 100 })) return
  // @ts-expect-error acquire waits
  if (!mem.tryAcquire('k', 1, { signal })) return
}

export function costsKeysAndPlansAreChecked() {
  const limiter = createLimiter({ burst, daily }, { plans: { pro: { burst, daily } } })
  void limiter.acquire({ burst: 'a', daily: 'b' }, { cost: { burst: 1, daily: 2 }, plan: 'pro', timeoutMs: 5, signal })
  // @ts-expect-error no such limit
  void limiter.acquire('k', { cost: { brust: 1, daily: 2 } })
  // @ts-expect-error a key is missing
  void limiter.acquire({ burst: 'a' })
  // @ts-expect-error no such plan
  void limiter.acquire('k', { plan: 'free' })
  // @ts-expect-error no such option
  void limiter.acquire('k', { timeout: 5 })
  // @ts-expect-error not a signal
  void limiter.acquire('k', { signal: true })
  // @ts-expect-error the cost of tryAcquire is its second argument
  void limiter.tryAcquire('k', 1, { timeoutMs: 5, cost: 2 })
}

/** With `exactOptionalPropertyTypes`, under which this is compiled. */
export function optionsMayBePassedOnUnset(user: { plan?: 'pro'; cost?: number; maxWaitMs?: number; timeoutMs?: number }) {
  const limiter = createLimiter(burst, { plans: { pro: burst } })
  const { plan, cost, maxWaitMs, timeoutMs } = user
  expectType<boolean>()(limiter.tryAcquire('k', cost, { plan }))
  limiter.consume('k', cost, { plan })
  limiter.peek('k', cost, { plan })
  limiter.reserve('k', cost, { plan, maxWaitMs })
  limiter.refund('k', cost, { plan })
  void limiter.acquire('k', { plan, cost, timeoutMs, signal: undefined })
  limiter.wrap('k', () => 1, { plan, cost, timeoutMs })
  limiter.pace('k', [1], { plan, cost, timeoutMs })
  acquireSync(limiter, 'k', { plan, cost, timeoutMs })
}

export function wrapKeepsArgumentsThisAndResult() {
  const limiter = createLimiter(burst)
  const length = limiter.wrap('k', (text: string, times?: number) => text.length * (times ?? 1))
  expectType<Promise<number>>()(length('abc', 2))
  // @ts-expect-error a number is not text
  void length(5)
  const later = limiter.wrap(
    (id: number) => `user:${id}`,
    async (id: number) => ({ id }),
    { cost: (id) => id },
  )
  expectType<Promise<{ id: number }>>()(later(5))
  const method = limiter.wrap('k', function (this: Date, ms: number) {
    return this.getTime() + ms
  })
  expectType<Promise<number>>()(method.call(new Date(), 5))
  // @ts-expect-error another `this`
  void method.call('text', 5)
  // @ts-expect-error a key is text
  limiter.wrap<unknown, [number], number>((id: number) => id, Math.abs)
}

export function theKeyMayBeFoundFromTheFirstArgumentsAlone() {
  const send = createLimiter(burst).wrap(
    (user: string) => `user:${user}`,
    (user: string, text: string) => `${user}: ${text}`,
  )
  expectType<Promise<string>>()(send('ann', 'hello'))
}

export async function paceKeepsTheItems(urls: readonly URL[], lines: AsyncIterable<string>) {
  const limiter = createLimiter(burst)
  for await (const url of limiter.pace((each) => each.host, urls)) expectType<URL>()(url)
  for await (const line of limiter.pace('k', lines, { cost: (each) => each.length })) expectType<string>()(line)
  // @ts-expect-error a number cannot be iterated
  limiter.pace('k', 5)
}

export function waitingIsANumber(remote: AsyncStore) {
  expectType<number>()(createLimiter(burst).waiting())
  expectType<number>()(createLimiter(burst, { name: 'api', store: remote }).waiting('k'))
}

export function optionsOfWaiting() {
  createLimiter(burst, { maxQueue: 5, maxAheadMs: 5, unref: true })
  // @ts-expect-error not a number
  createLimiter(burst, { maxQueue: '5' })
  // @ts-expect-error not a boolean
  createLimiter(burst, { unref: 1 })
}
