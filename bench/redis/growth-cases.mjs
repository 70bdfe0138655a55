// What grows, and what is called then: keys that hold more and more entries or slots, and limiters
// of more and more limits.
import { createLimiter, gcra, slidingLog, slidingWindow } from '../../dist/index.js'
import { redisStore } from '../../dist/stores/redis/index.js'
import { fakeClock } from '../../dist/testing/index.js'
import { connect } from './clients.mjs'
import { copyTemplate, TEMPLATE } from './held.mjs'

/** A thousand seconds: each size below divides it into whole milliseconds. */
const WINDOW_MS = 1_000_000
/** How many are called in one turn of the event loop where a batch is looked at. */
export const BATCH = 128
/** How many refunds are made on each copy, the oldest entry first. */
const REFUNDS = 10
/** Sizes that take longer to fill are left out. */
const FILL_MS = 60_000
/** How many calls of a filling are under way. */
const FILLING = 250

/**
 * What grows: its sizes, those of a quick run, and the limits of one size. `holds`: a key is called
 * so often beforehand, evenly over one window; then the window, and the oldest that a key holds,
 * can be asked for too.
 */
export const GROWTHS = {
  entries: {
    sizes: [10, 100, 1000, 5000, 10_000, 50_000],
    quickSizes: [10, 100, 1000],
    limits: () => slidingLog({ limit: 100_000, window: `${WINDOW_MS}ms` }),
    holds: true,
  },
  slots: {
    sizes: [10, 20, 50, 100],
    quickSizes: [10, 50, 100],
    limits: (slots) => slidingWindow({ limit: 1_000_000, window: `${WINDOW_MS}ms`, slots }),
    holds: true,
  },
  limits: {
    sizes: [1, 2, 5, 10, 20, 50, 100],
    quickSizes: [1, 10, 50],
    limits: (count) => Object.fromEntries(Array.from({ length: count }, (_, k) => [`limit-${k}`, gcra({ rate: '1000/s', burst: 1e6 })])),
    holds: false,
  },
}

export const CASES = {
  decision: 'one decision',
  half: 'half of the window has just left',
  refund: 'refund of the oldest',
  batch: 'a batch',
}

/**
 * The cases of one size: for each what is called, one after the other. Undefined where the key took
 * too long to fill.
 */
export async function casesOf(growth, size, { client: clientName, port, database, calls }) {
  const { limits, holds } = GROWTHS[growth]
  const connection = await connect(clientName, port, database)
  const [startMs, stepMs] = [Date.now(), holds ? WINDOW_MS / size : 1]
  const clock = fakeClock(startMs)
  const store = redisStore(connection.client)
  const limiter = createLimiter(limits(size), { name: growth, store, clock, storeTimeoutMs: Number.POSITIVE_INFINITY })
  const subject = { limiter, clock, size, startMs, stepMs, endMs: startMs + (size - 1) * stepMs }
  if (!holds) return { decision: () => steady(subject), batch: () => wave(subject) }
  if (!(await filled(subject))) return undefined
  for (const [prefix, count] of [
    ['half:', calls.half],
    ['refund:', Math.ceil(calls.refund / REFUNDS)],
    ['batch:', BATCH],
    ['check:', 1],
  ])
    await copyTemplate(connection.send, prefix, count)
  await checkRefunds(subject)
  return {
    decision: () => steady(subject),
    half: (k) => leap(subject, k),
    refund: (k) => refund(subject, `refund:${Math.floor(k / REFUNDS)}`, k % REFUNDS),
    batch: () => wave(subject),
  }
}

/** One charge for each step of the window. */
async function filled({ limiter, clock, startMs, stepMs, size }) {
  const fromMs = performance.now()
  for (let k = 0; k < size; ) {
    const calls = []
    for (const end = Math.min(size, k + FILLING); k < end; k++) {
      clock.setMs(startMs + k * stepMs)
      calls.push(limiter.consume(TEMPLATE))
    }
    for (const { allowed } of await Promise.all(calls)) if (!allowed) throw new Error(`a key was refused while it was filled with ${size}`)
    if (k < size && performance.now() - fromMs > FILL_MS) return false
  }
  return true
}

/** With every call one more charge, and the oldest one leaves. */
function steady(subject) {
  subject.steadyMs = (subject.steadyMs ?? subject.endMs) + subject.stepMs
  subject.clock.setMs(subject.steadyMs)
  return admitted(subject.limiter.consume(TEMPLATE))
}

/** A copy, half a window after its last charge. */
function leap({ limiter, clock, endMs }, k) {
  clock.setMs(endMs + WINDOW_MS / 2)
  return admitted(limiter.consume(`half:${k}`))
}

/**
 * The charge number `k` of a copy. Those before it were given back already, so it is the oldest.
 */
function refund({ limiter, clock, startMs, stepMs, endMs }, key, k) {
  clock.setMs(endMs)
  return limiter.settle(key, 0, { of: { atMs: startMs + k * stepMs, parts: { default: { resetAfterMs: 0 } } } })
}

/** That refunds find what they give back. */
async function checkRefunds(subject) {
  for (let k = 0; k < REFUNDS; k++) await refund(subject, 'check:0', k)
  const { limit, remaining } = await subject.limiter.peek('check:0')
  if (limit - remaining !== subject.size - REFUNDS)
    throw new Error(`of ${subject.size}, ${limit - remaining} are left after ${REFUNDS} refunds`)
}

/** Many keys, a call for each in one turn. */
function wave(subject) {
  subject.waveMs = (subject.waveMs ?? subject.endMs) + subject.stepMs
  subject.clock.setMs(subject.waveMs)
  return Promise.all(Array.from({ length: BATCH }, (_, k) => admitted(subject.limiter.consume(`batch:${k}`))))
}

async function admitted(asked) {
  const { allowed } = await asked
  if (!allowed) throw new Error('a key that has room was refused')
}
