/**
 * Waiting without writing `acquire`: functions that wait their turn, and items at the limiter's
 * pace.
 */
import { getEventListeners, once } from 'node:events'
import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { createLimiter, fixedWindow, gcra, type Limit, leakyBucket, WaitError } from '../../src/index.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { noUnhandledRejections, PATIENT, setUp, slowStore, told, watched } from './support.ts'

noUnhandledRejections()

const oneASecond = gcra({ rate: '1/s', burst: 1 })

describe('wrap', () => {
  test('calls with the same arguments and the same `this`, and gives what the function gives', async () => {
    const { limiter } = setUp(gcra({ rate: '1/s', burst: 9 }))
    const seen: unknown[] = []
    const object = {
      factor: 3,
      times: limiter.wrap('k', function (this: { factor: number }, a: number, ...more: string[]) {
        seen.push(this, a, more)
        return a * this.factor
      }),
    }
    await expect(object.times(5, 'x', 'y')).resolves.toBe(15)
    expect(seen).toEqual([object, 5, ['x', 'y']])
    expect(seen[0]).toBe(object)
  })

  test('waits before it calls, first come, first served', async () => {
    const { limiter, moveTo } = setUp(oneASecond)
    const calls: number[] = []
    const call = limiter.wrap('k', (n: number) => calls.push(n))
    for (const n of [1, 2, 3]) void call(n)
    await told()
    expect(calls).toEqual([1])
    await moveTo(999_999)
    expect(calls).toEqual([1])
    await moveTo(1_000_000)
    expect(calls).toEqual([1, 2])
    await moveTo(2_000_000)
    expect(calls).toEqual([1, 2, 3])
  })

  test('passes on what an asynchronous function resolves to, and what either kind throws', async () => {
    const { limiter } = setUp(gcra({ rate: '1/s', burst: 9 }))
    const error = new Error('mine')
    await expect(limiter.wrap('k', async () => 'later')()).resolves.toBe('later')
    const fails = limiter.wrap('k', () => {
      throw error
    })
    await expect(fails()).rejects.toBe(error)
    await expect(limiter.wrap('k', async () => Promise.reject(error))()).rejects.toBe(error)
    // A call that failed was made: its permit is used.
    expect(limiter.peek('k').remaining).toBe(6)
  })

  test('finds key and cost from the arguments', async () => {
    const { limiter } = setUp(gcra({ rate: '1/s', burst: 9 }))
    const key = (user: string, _text: string) => `user:${user}`
    const send = limiter.wrap(key, (user: string, text: string) => `${user}: ${text}`, { cost: (_user, text) => text.length })
    await expect(send('ann', 'hello')).resolves.toBe('ann: hello')
    expect([limiter.peek('user:ann').remaining, limiter.peek('user:bob').remaining]).toEqual([4, 9])
  })

  test('does not call if it may not wait, and says why', async () => {
    const { limiter } = setUp(oneASecond)
    let calls = 0
    const call = limiter.wrap('k', () => calls++, { timeoutMs: 500 })
    await call()
    await expect(call()).rejects.toBeInstanceOf(WaitError)
    const gone = new AbortController()
    const waits = watched(limiter.wrap('k', () => calls++, { signal: gone.signal })())
    gone.abort('enough')
    await told()
    expect([waits.error, calls]).toEqual(['enough', 1])
    limiter.close()
    await expect(call()).rejects.toMatchObject({ code: 'CLOSED' })
  })

  test('rejects if the key cannot be found, and does not call', async () => {
    const { limiter, store } = setUp(oneASecond)
    let calls = 0
    const call = limiter.wrap(
      () => '',
      () => calls++,
    )
    await expect(call()).rejects.toMatchObject({ code: 'KEY' })
    expect([calls, store.size]).toEqual([0, 0])
  })

  test('decides by a plan', async () => {
    const { limiter } = setUp(oneASecond, { plans: { pro: gcra({ rate: '1/s', burst: 5 }) } })
    const call = limiter.wrap('k', () => {}, { plan: 'pro', cost: 5 })
    await call()
    expect(limiter.peek('k', 1, { plan: 'pro' }).remaining).toBe(0)
  })
})

/** Items that say when they are closed. */
function source(count: number, from: 'sync' | 'async') {
  const state = { pulled: 0, closed: 0 }
  const next = () => {
    state.pulled += 1
    return state.pulled > count ? { done: true as const, value: undefined } : { done: false as const, value: state.pulled }
  }
  const finish = () => {
    state.closed += 1
    return { done: true as const, value: undefined }
  }
  const sync = { [Symbol.iterator]: () => ({ next, return: finish }) }
  const async = { [Symbol.asyncIterator]: () => ({ next: async () => next(), return: async () => finish() }) }
  return { state, items: (from === 'sync' ? sync : async) as Iterable<number> | AsyncIterable<number> }
}

describe.each(['sync', 'async'] as const)('pace of %s items', (from) => {
  test('gives the same items in order, each at its time', async () => {
    const { limiter, moveTo, clock } = setUp(leakyBucket({ capacity: 2, leak: '2/s' }))
    const { items, state } = source(4, from)
    const seen: [number, number][] = []
    const done = watched(
      (async () => {
        for await (const item of limiter.pace('k', items)) seen.push([item, clock.nowUs()])
      })(),
    )
    for (let us = 0; us <= 1_500_000; us += 500_000) await moveTo(us)
    await moveTo(2_000_000)
    expect(seen).toEqual([
      [1, 0],
      [2, 500_000],
      [3, 1_000_000],
      [4, 1_500_000],
    ])
    expect([done.end, state, clock.timers]).toEqual(['resolved', { pulled: 5, closed: 0 }, 0])
  })

  test('closes the source when its reader breaks off', async () => {
    const { limiter } = setUp(gcra({ rate: '1/s', burst: 9 }))
    const { items, state } = source(9, from)
    for await (const item of limiter.pace('k', items)) if (item === 2) break
    expect(state).toEqual({ pulled: 2, closed: 1 })
    expect(limiter.peek('k').remaining).toBe(7)
  })

  test('closes the source when its reader throws', async () => {
    const { limiter } = setUp(gcra({ rate: '1/s', burst: 9 }))
    const { items, state } = source(9, from)
    const read = async () => {
      for await (const item of limiter.pace('k', items)) throw new Error(`at ${item}`)
    }
    await expect(read()).rejects.toThrow('at 1')
    expect(state).toEqual({ pulled: 1, closed: 1 })
  })

  test.each([
    ['the signal aborts', 'abort'],
    ['the limiter is closed', 'close'],
    ['the time is up', 'timeout'],
  ])('closes the source when %s', async (_, how) => {
    const { limiter, clock } = setUp(oneASecond)
    const { items, state } = source(9, from)
    const gone = new AbortController()
    const seen: number[] = []
    const options = how === 'timeout' ? { timeoutMs: 500 } : { signal: gone.signal }
    const read = watched(
      (async () => {
        for await (const item of limiter.pace('k', items, options)) seen.push(item)
      })(),
    )
    await told()
    await told()
    if (how === 'abort') gone.abort(new Error('enough'))
    if (how === 'close') limiter.close()
    await told()
    expect(read.end).toBe('rejected')
    if (how === 'abort') expect(read.error).toBe(gone.signal.reason)
    else expect(read.code).toBe(how === 'close' ? 'CLOSED' : 'TIMEOUT')
    expect([seen, state, clock.timers]).toEqual([[1], { pulled: 2, closed: 1 }, 0])
  })

  test('finds key and cost from the item', async () => {
    const { limiter } = setUp(gcra({ rate: '1/s', burst: 9 }))
    const { items } = source(4, from)
    const seen: number[] = []
    for await (const item of limiter.pace((n) => (n % 2 === 0 ? 'even' : 'odd'), items, { cost: (n) => n })) seen.push(item)
    expect(seen).toEqual([1, 2, 3, 4])
    expect([limiter.peek('even').remaining, limiter.peek('odd').remaining]).toEqual([3, 5])
  })
})

describe.each(['sync', 'async'] as const)('pace of %s items that is ended while it waits', (from) => {
  const LIMITS: readonly (readonly [name: string, limit: Limit])[] = [
    ['booked ahead', oneASecond],
    ['a window', fixedWindow({ limit: 1, window: '1s' })],
  ]

  describe.each(LIMITS)('%s', (_, limit) => {
    test.each(['return', 'throw'] as const)('%s ends the wait, takes nothing and closes the source', async (how) => {
      const { limiter, clock, held } = setUp<Limit>(limit)
      const { items, state } = source(9, from)
      const pace = limiter.pace('k', items)
      await pace.next()
      const before = held()
      const pending = [watched(pace.next()), watched(pace.next())]
      await told()
      expect([pending.map(({ end }) => end), limiter.waiting('k'), clock.timers]).toEqual([['waits', 'waits'], 1, 1])
      const error = new Error('enough')
      const end = watched(how === 'return' ? pace.return() : pace.throw(error))
      await told()
      const over = { done: true, value: undefined }
      expect(pending).toMatchObject([{ value: over }, { value: over }])
      expect(end).toMatchObject(how === 'return' ? { value: over } : { error })
      expect([state, limiter.waiting(), clock.timers, held()]).toEqual([{ pulled: 2, closed: 1 }, 0, 0, before])
      await expect(pace.next()).resolves.toEqual(over)
    })
  })

  test('the wait of another goes on, one place further in front', async () => {
    const { limiter, moveTo } = setUp(oneASecond)
    const pace = limiter.pace('k', source(9, from).items)
    await pace.next()
    void pace.next()
    await told()
    const other = watched(limiter.acquire('k'))
    void pace.return()
    await told()
    await moveTo(999_999)
    expect(other.end).toBe('waits')
    await moveTo(1_000_000)
    expect(other.end).toBe('resolved')
  })

  test('its signal is let go of, and the end of the signal still ends a wait with its reason', async () => {
    const { limiter } = setUp(oneASecond)
    const gone = new AbortController()
    const pace = limiter.pace('k', source(9, from).items, { signal: gone.signal })
    await pace.next()
    void pace.next()
    await told()
    expect(getEventListeners(gone.signal, 'abort')).toHaveLength(1)
    void pace.return()
    await told()
    expect(getEventListeners(gone.signal, 'abort')).toEqual([])
    const [first, second] = [0, 1].map(() => limiter.pace('k', source(9, from).items, { signal: gone.signal }))
    const waits = [watched((first as typeof pace).next()), watched((second as typeof pace).next())]
    await told()
    gone.abort('enough')
    await told()
    // Both left together: neither got what the other left behind.
    expect(waits).toMatchObject([{ error: 'enough' }, { error: 'enough' }])
    expect(limiter.peek('k')).toMatchObject({ retryAfterMs: 1_000 })
  })
})

test('pace that is ended while its source is waited for takes nothing of what comes then', async () => {
  const { limiter, store } = setUp(oneASecond)
  let give = (_: number): void => undefined
  const slow = (async function* () {
    yield await new Promise<number>((resolve) => {
      give = resolve
    })
  })()
  const pace = limiter.pace('k', slow)
  const next = watched(pace.next())
  const end = watched(pace.return())
  give(1)
  await told()
  expect([next.value, end.value, store.size]).toEqual([{ done: true, value: undefined }, { done: true, value: undefined }, 0])
})

test('pace that is ended while a slow store is asked gives back what the answer took', async () => {
  const clock = fakeClock()
  const store = slowStore()
  const limiter = createLimiter(oneASecond, { name: 'api', store, clock, ...PATIENT })
  const pace = limiter.pace('k', [1])
  const next = watched(pace.next())
  await told()
  expect(store.pending.map(({ step }) => step.op)).toEqual(['take'])
  const end = watched(pace.return())
  await told()
  expect([next.end, end.end]).toEqual(['resolved', 'resolved'])
  await store.settle()
  const left = watched(limiter.peek('k'))
  await store.settle()
  expect(left.value).toMatchObject({ remaining: 1 })
})

test('a stream that is destroyed does not wait for its next item', async () => {
  const { limiter, clock } = setUp(gcra({ rate: '1/d', burst: 1 }))
  const stream = Readable.from(limiter.pace('k', [1, 2, 3]))
  await expect(once(stream, 'data')).resolves.toEqual([1])
  const turns = async () => {
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate)
  }
  await turns()
  expect(limiter.waiting('k')).toBe(1)
  stream.destroy()
  await turns()
  expect([stream.closed, limiter.waiting('k'), clock.timers]).toEqual([true, 0, 0])
})

test('pace takes nothing before it is read, and passes on what the source throws', async () => {
  const { limiter, store } = setUp(oneASecond)
  const error = new Error('the source broke')
  const broken = (function* () {
    yield 1
    throw error
  })()
  const items = limiter.pace('k', broken)
  await told()
  expect(store.size).toBe(0)
  await expect(items.next()).resolves.toEqual({ done: false, value: 1 })
  await expect(items.next()).rejects.toBe(error)
  await expect(items.next()).resolves.toEqual({ done: true, value: undefined })
})

test.each([5, null, undefined, {}])('pace refuses %o before anything is touched', (source) => {
  const limiter = createLimiter(gcra({ rate: '1/s', burst: 1 }))
  expect(() => limiter.pace('k', source as never)).toThrow(expect.objectContaining({ code: 'CONFIG' }))
  expect(() => limiter.pace('k', [1], { costs: 2 } as never)).toThrow(expect.objectContaining({ code: 'CONFIG' }))
  expect(limiter.peek('k').remaining).toBe(1)
})
