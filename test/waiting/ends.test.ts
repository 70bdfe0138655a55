/**
 * How a wait ends for its caller: in time, too late, never, too many, gone, closed; and what is
 * told about it.
 */
import { describe, expect, test } from 'vitest'
import {
  type DecisionEvent,
  fixedWindow,
  gcra,
  type Limit,
  leakyBucket,
  SluiceError,
  slidingLog,
  slidingWindow,
  tokenBucket,
  WaitError,
} from '../../src/index.ts'
import { noUnhandledRejections, setUp, told, watched } from './support.ts'

noUnhandledRejections()

/** Each full after two, with room for one more after exactly a second. */
const FULL_AFTER_TWO: readonly (readonly [name: string, limit: Limit])[] = [
  ['gcra', gcra({ rate: '1/s', burst: 2 })],
  ['tokenBucket', tokenBucket({ capacity: 2, refill: '1/s' })],
  ['fixedWindow', fixedWindow({ limit: 2, window: '1s' })],
  ['slidingLog', slidingLog({ limit: 2, window: '1s' })],
  ['slidingWindow', slidingWindow({ limit: 2, window: '1s', slots: 1 })],
]

function full(limit: Limit, options: Parameters<typeof setUp>[1] = {}) {
  const all = setUp<Limit>(limit, options)
  expect(all.limiter.consume('k', 2).allowed).toBe(true)
  const { retryAfterMs } = all.limiter.peek('k')
  return { ...all, retryAfterMs }
}

describe.each(FULL_AFTER_TWO)('a deadline at a %s', (_, limit) => {
  test('is met when the turn comes exactly then', async () => {
    const { limiter, retryAfterMs, moveTo } = full(limit)
    const wait = watched(limiter.acquire('k', { timeoutMs: retryAfterMs }))
    await moveTo(retryAfterMs * 1000 - 1)
    expect(wait.end).toBe('waits')
    await moveTo(retryAfterMs * 1000)
    expect(wait).toMatchObject({ end: 'resolved', value: { allowed: true, delayMs: 0, waitedMs: retryAfterMs, atMs: retryAfterMs } })
  })

  test('that comes a microsecond earlier is answered at once, and nothing is taken', async () => {
    const { limiter, retryAfterMs, held, clock } = full(limit)
    const before = held()
    const timeoutMs = (retryAfterMs * 1000 - 1) / 1000
    const wait = watched(limiter.acquire('k', { timeoutMs }))
    await told()
    expect(wait).toMatchObject({ end: 'rejected', code: 'TIMEOUT' })
    expect({ held: held(), timers: clock.timers, waiting: limiter.waiting() }).toEqual({ held: before, timers: 0, waiting: 0 })
  })

  test('of 0 is met by what is there', async () => {
    const { limiter } = setUp<Limit>(limit)
    await expect(limiter.acquire('k', { timeoutMs: 0, cost: 2 })).resolves.toMatchObject({ waitedMs: 0, remaining: 0 })
    await expect(limiter.acquire('k', { timeoutMs: 0 })).rejects.toMatchObject({ code: 'TIMEOUT' })
  })

  test('that cannot be met behind others is answered at once too', async () => {
    const { limiter, retryAfterMs, held } = full(limit, { maxAheadMs: 0 })
    const first = watched(limiter.acquire('k'))
    const before = held()
    const second = watched(limiter.acquire('k', { timeoutMs: (retryAfterMs * 1000 - 1) / 1000 }))
    await told()
    expect([first.end, second.code]).toEqual(['waits', 'TIMEOUT'])
    expect(held()).toEqual(before)
    limiter.close()
  })

  test('that passes while others are before it ends the wait then', async () => {
    const { limiter, retryAfterMs, moveTo, clock } = full(limit, { maxAheadMs: 0 })
    void limiter.acquire('k', { cost: 2 })
    const second = watched(limiter.acquire('k', { timeoutMs: retryAfterMs, cost: 2 }))
    await moveTo(retryAfterMs * 1000 - 1)
    // A gcra and a bucket need two seconds for two: there the second is told so at once.
    if (second.end === 'waits') await moveTo(retryAfterMs * 1000)
    expect(second.code).toBe('TIMEOUT')
    await moveTo(1e9)
    expect([limiter.waiting(), clock.timers]).toEqual([0, 0])
  })
})

describe('the error', () => {
  test.each(FULL_AFTER_TWO)('of a %s carries what the limits said', async (_, limit) => {
    const { limiter, retryAfterMs } = full(limit, { maxQueue: 0 })
    const late = watched(limiter.acquire('k', { timeoutMs: 1 }))
    const many = watched(limiter.acquire('k'))
    const never = watched(limiter.acquire('k', { cost: 3 }))
    await told()
    expect(late).toMatchObject({ code: 'TIMEOUT', error: { decision: { outcome: 'limited', limit: 2, remaining: 0 } } })
    expect(many).toMatchObject({ code: 'QUEUE_FULL', error: { decision: { outcome: 'limited', retryAfterMs } } })
    expect(never).toMatchObject({
      code: 'IMPOSSIBLE',
      error: { decision: { outcome: 'impossible', retryAfterMs: Number.POSITIVE_INFINITY } },
    })
    for (const { error } of [late, many, never]) {
      expect(error).toBeInstanceOf(WaitError)
      expect(error).toBeInstanceOf(SluiceError)
      expect((error as WaitError).name).toBe('WaitError')
      expect(String(error)).toContain('"k"')
    }
  })

  test('that ends a wait outside carries what was said last', async () => {
    const { limiter, moveTo } = full(fixedWindow({ limit: 2, window: '1s' }))
    const first = watched(limiter.acquire('k', { cost: 2, timeoutMs: 1_500 }))
    const second = watched(limiter.acquire('k', { timeoutMs: 1_500 }))
    await moveTo(1_000_000)
    await moveTo(1_500_000)
    expect(first.end).toBe('resolved')
    expect(second).toMatchObject({ code: 'TIMEOUT', error: { decision: { outcome: 'limited', atMs: 1_000, retryAfterMs: 1_000 } } })
  })
})

describe('maxQueue', () => {
  test.each(FULL_AFTER_TWO)('of a %s refuses a caller that is one too many, and takes nothing for it', async (_, limit) => {
    const { limiter, held, moveTo } = full(limit, { maxQueue: 2 })
    const waits = [1, 2].map(() => watched(limiter.acquire('k')))
    const before = held()
    const third = watched(limiter.acquire('k'))
    const fourth = watched(limiter.acquire('k', { timeoutMs: 1e6 }))
    await told()
    expect([third.code, fourth.code, limiter.waiting('k')]).toEqual(['QUEUE_FULL', 'QUEUE_FULL', 2])
    expect(held()).toEqual(before)
    await moveTo(5_000_000)
    expect(waits.map(({ end }) => end)).toEqual(['resolved', 'resolved'])
  })

  test('counts each key, and a place that becomes free can be had', async () => {
    const { limiter } = full(gcra({ rate: '1/s', burst: 2 }), { maxQueue: 1 })
    limiter.consume('other', 2)
    const gone = new AbortController()
    const waits = [watched(limiter.acquire('k', { signal: gone.signal })), watched(limiter.acquire('other'))]
    await told()
    expect(waits.map(({ end }) => end)).toEqual(['waits', 'waits'])
    gone.abort()
    const next = watched(limiter.acquire('k'))
    await told()
    expect([waits[0]?.end, next.end, limiter.waiting()]).toEqual(['rejected', 'waits', 2])
    limiter.close()
  })

  test.each(FULL_AFTER_TWO)('of 0 at a %s lets no caller wait, and serves those that need not', async (_, limit) => {
    const { limiter, clock } = setUp<Limit>(limit, { maxQueue: 0 })
    await expect(limiter.acquire('k', { cost: 2 })).resolves.toMatchObject({ waitedMs: 0 })
    await expect(limiter.acquire('k')).rejects.toMatchObject({ code: 'QUEUE_FULL' })
    expect([limiter.waiting(), clock.timers]).toEqual([0, 0])
  })

  test('of 0 at a leaky bucket lets through only who may act at once', async () => {
    const { limiter, held } = setUp(leakyBucket({ capacity: 5, leak: '1/s' }), { maxQueue: 0 })
    await expect(limiter.acquire('k')).resolves.toMatchObject({ waitedMs: 0, delayMs: 0 })
    const before = held()
    await expect(limiter.acquire('k')).rejects.toMatchObject({ code: 'QUEUE_FULL' })
    expect(held()).toEqual(before)
  })
})

describe('calls that need not wait', () => {
  test.each(FULL_AFTER_TWO)('a cost of 0 at a full %s is had at once, though others wait', async (_, limit) => {
    const { limiter, held } = full(limit, { maxAheadMs: 0, maxQueue: 1 })
    void limiter.acquire('k').catch(() => {})
    const before = held()
    await expect(limiter.acquire('k', { cost: 0 })).resolves.toMatchObject({ allowed: true, waitedMs: 0 })
    await expect(limiter.acquire('k', { cost: 0, timeoutMs: 0 })).resolves.toMatchObject({ allowed: true, waitedMs: 0 })
    expect(held()).toEqual(before)
    limiter.close()
  })

  test.each(FULL_AFTER_TWO)('a cost that can never fit a %s is refused at once, though others wait', async (_, limit) => {
    const { limiter, held } = full(limit, { maxAheadMs: 0 })
    void limiter.acquire('k').catch(() => {})
    const before = held()
    await expect(limiter.acquire('k', { cost: 3 })).rejects.toMatchObject({ code: 'IMPOSSIBLE' })
    await expect(limiter.acquire('k', { cost: 3, timeoutMs: 9_999 })).rejects.toMatchObject({ code: 'IMPOSSIBLE' })
    expect(held()).toEqual(before)
    limiter.close()
  })

  test('of one limit nothing: the others decide, also when many are booked of it', async () => {
    const limits = { a: tokenBucket({ capacity: 1, refill: '1/s' }), b: gcra({ rate: '1/s', burst: 1 }) }
    const { limiter, moveTo } = setUp(limits)
    limiter.consume('k')
    for (let k = 0; k < 5; k++) limiter.reserve('k', { a: 0, b: 1 })
    const ofB = watched(limiter.acquire('k', { cost: { a: 0, b: 1 } }))
    const ofA = watched(limiter.acquire('k', { cost: { a: 1, b: 0 }, timeoutMs: 1_000 }))
    const ofBoth = watched(limiter.acquire('k', { cost: 1 }))
    await moveTo(1_000_000)
    expect([ofA.end, ofB.end, ofBoth.end]).toEqual(['resolved', 'waits', 'waits'])
    await moveTo(6_000_000)
    expect([ofB.end, ofBoth.end]).toEqual(['resolved', 'waits'])
    await moveTo(7_000_000)
    expect(ofBoth.end).toBe('resolved')
  })
})

describe('a signal', () => {
  test.each(FULL_AFTER_TWO)('that was aborted before takes nothing of a %s', async (_, limit) => {
    const { limiter, store } = setUp<Limit>(limit)
    const reason = new Error('not any more')
    const signal = AbortSignal.abort(reason)
    const wait = watched(limiter.acquire('k', { signal }))
    await told()
    expect(wait.error).toBe(reason)
    expect([store.size, limiter.waiting()]).toEqual([0, 0])
  })

  test('rejects with whatever was given as its reason', async () => {
    const { limiter } = full(gcra({ rate: '1/s', burst: 2 }))
    for (const reason of [new Error('mine'), 'text', 0, null, { odd: true }]) {
      const gone = new AbortController()
      const wait = watched(limiter.acquire('k', { signal: gone.signal }))
      gone.abort(reason)
      await told()
      expect(wait).toMatchObject({ end: 'rejected', error: reason })
    }
    const gone = new AbortController()
    const wait = watched(limiter.acquire('k', { signal: gone.signal }))
    gone.abort()
    await told()
    expect(wait.error).toBe(gone.signal.reason)
    expect(wait.error).toMatchObject({ name: 'AbortError' })
  })

  test('that aborts after the turn came changes nothing', async () => {
    const { limiter, moveTo, held } = full(gcra({ rate: '1/s', burst: 2 }))
    const gone = new AbortController()
    const wait = watched(limiter.acquire('k', { signal: gone.signal }))
    await moveTo(1_000_000)
    const before = held()
    gone.abort()
    await told()
    expect([wait.end, held()]).toEqual(['resolved', before])
  })

  test('for all who wait on it ends them all: nobody gets what another of them left', async () => {
    for (const [, limit] of FULL_AFTER_TWO) {
      const { limiter, held } = setUp<Limit>(limit)
      limiter.consume('k')
      const before = held()
      const gone = new AbortController()
      const waits = [2, 1, 1].map((cost) => watched(limiter.acquire('k', { cost, signal: gone.signal })))
      await told()
      gone.abort()
      await told()
      expect(waits.map(({ end }) => end)).toEqual(['rejected', 'rejected', 'rejected'])
      expect(held()).toEqual(before)
    }
  })

  test('is watched once for all, and not at all once nobody waits', async () => {
    const { limiter, moveTo } = full(gcra({ rate: '1/s', burst: 2 }))
    const { signal, counts } = countingSignal()
    for (let k = 0; k < 5; k++) void limiter.acquire('k', { signal })
    await told()
    expect(counts).toEqual({ added: 1, removed: 0 })
    await moveTo(5_000_000)
    expect(counts).toEqual({ added: 1, removed: 1 })
  })
})

/** A signal that counts its listeners. */
function countingSignal() {
  const { signal } = new AbortController()
  const counts = { added: 0, removed: 0 }
  const add = signal.addEventListener.bind(signal)
  const remove = signal.removeEventListener.bind(signal)
  signal.addEventListener = ((...args: Parameters<typeof add>) => {
    counts.added += 1
    add(...args)
  }) as typeof add
  signal.removeEventListener = ((...args: Parameters<typeof remove>) => {
    counts.removed += 1
    remove(...args)
  }) as typeof remove
  return { signal, counts }
}

describe('the decision of acquire', () => {
  test('is how things are at its time', async () => {
    const { limiter, moveTo } = full(gcra({ rate: '1/s', burst: 2 }))
    const waits = [1, 2].map(() => watched(limiter.acquire('k')))
    await moveTo(2_500_000)
    expect(waits[0]?.value).toMatchObject({
      outcome: 'allowed',
      atMs: 1_000,
      waitedMs: 1_000,
      delayMs: 0,
      resetAfterMs: 2_000,
      retryAfterMs: 0,
    })
    expect(waits[1]?.value).toMatchObject({ outcome: 'allowed', atMs: 2_000, waitedMs: 2_000, delayMs: 0, resetAfterMs: 2_000 })
  })

  test('never tells a caller whose turn has come to wait, also when it came early', async () => {
    const { limiter } = full(gcra({ rate: '1/s', burst: 2 }))
    const wait = watched(limiter.acquire('k', { cost: 2 }))
    limiter.refund('k', 2)
    await told()
    expect(wait).toMatchObject({ end: 'resolved', value: { waitedMs: 0, delayMs: 0, parts: { default: { delayMs: 0 } } } })
  })
})

describe('onDecision', () => {
  function listening() {
    const events: DecisionEvent[] = []
    return { events, ...full(gcra({ rate: '1/s', burst: 2 }), { maxQueue: 3, onDecision: (event) => events.push(event) }) }
  }
  const verbs = (events: readonly DecisionEvent[]) => events.map(({ verb, decision }) => `${verb} ${decision.outcome}`)

  test('is told once of each wait, when it ends', async () => {
    const { limiter, events, moveTo } = listening()
    events.length = 0
    const signal = new AbortController().signal
    void limiter.acquire('k')
    void limiter.acquire('k', { signal })
    await told()
    expect(events).toEqual([])
    await moveTo(1_000_000)
    await moveTo(3_000_000)
    expect(verbs(events)).toEqual(['acquire allowed', 'acquire allowed'])
    expect(events[0]).toMatchObject({ limiter: 'api', key: 'k', cost: 1, plan: undefined, decision: { delayMs: 0, atMs: 1_000 } })
  })

  test('is told of refusals', async () => {
    const { limiter, events } = listening()
    events.length = 0
    const waits = [limiter.acquire('k', { timeoutMs: 10 }), limiter.acquire('k', { cost: 3 })].map((wait) => watched(wait))
    await told()
    expect(waits.map(({ end }) => end)).toEqual(['rejected', 'rejected'])
    expect(verbs(events).sort()).toEqual(['acquire impossible', 'acquire limited'])
  })

  test('is not told of waiters that left, nor of a close', async () => {
    const { limiter, events } = listening()
    events.length = 0
    const gone = new AbortController()
    watched(limiter.acquire('k', { signal: gone.signal }))
    watched(limiter.acquire('k', { signal: AbortSignal.abort() }))
    watched(limiter.acquire('k'))
    gone.abort()
    limiter.close()
    await told()
    expect(events).toEqual([])
  })
})

describe('close', () => {
  test.each(FULL_AFTER_TWO)('ends every wait at a %s, gives back what was booked, and stops the timer', async (_, limit) => {
    const { limiter, held, clock } = full(limit, { maxAheadMs: 1_000 })
    const before = held()
    const waits = [limiter.acquire('k'), limiter.acquire('k', { timeoutMs: 9_999 }), limiter.acquire('k')].map((wait) => watched(wait))
    await told()
    limiter[Symbol.dispose]()
    await told()
    for (const wait of waits) expect(wait).toMatchObject({ end: 'rejected', code: 'CLOSED' })
    expect([limiter.waiting(), clock.timers, held()]).toEqual([0, 0, before])
    await expect(limiter.acquire('k')).rejects.toMatchObject({ code: 'CLOSED' })
    await expect(limiter.acquire('k', { timeoutMs: 1 })).rejects.toMatchObject({ code: 'CLOSED' })
    limiter.close()
  })
})

describe('wrong input is a rejection, and touches nothing', () => {
  test.each<[options: object | null, code: string]>([
    [{ cost: -1 }, 'COST'],
    [{ cost: 0.5 }, 'COST'],
    [{ cost: Number.NaN }, 'COST'],
    [{ cost: '1' }, 'COST'],
    [{ cost: null }, 'COST'],
    [{ timeoutMs: -1 }, 'CONFIG'],
    [{ timeoutMs: Number.NaN }, 'CONFIG'],
    [{ timeoutMs: '5' }, 'CONFIG'],
    [{ timeoutMs: null }, 'CONFIG'],
    [{ signal: {} }, 'CONFIG'],
    [{ signal: null }, 'CONFIG'],
    [{ plan: 'none' }, 'CONFIG'],
    [{ timeout: 5 }, 'CONFIG'],
    [null, 'CONFIG'],
  ])('%j of acquire', async (options, code) => {
    const { limiter, store } = setUp(gcra({ rate: '1/s', burst: 2 }))
    await expect(limiter.acquire('k', options as never)).rejects.toMatchObject({ name: 'SluiceError', code })
    expect(store.size).toBe(0)
  })

  test('keys', async () => {
    const { limiter } = setUp(gcra({ rate: '1/s', burst: 2 }))
    await expect(limiter.acquire('')).rejects.toMatchObject({ code: 'KEY' })
    await expect(limiter.acquire('', { timeoutMs: 5 })).rejects.toMatchObject({ code: 'KEY' })
    expect(() => limiter.waiting('')).toThrow(expect.objectContaining({ code: 'KEY' }))
  })
})
