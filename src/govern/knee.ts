/**
 * Finds the knee: the limit from which on more calls in flight bring no more throughput, only
 * longer queues, and stays there. See knee.md.
 */
import { type Bounds, checkBounds, checkLatency, clamped, type Governor, type GovernorState, type Window } from './governor.ts'

export interface KneeOptions extends Bounds {
  /**
   * The limit to begin with. Whole, from `min` to `max`; default 10, or what of them is nearest to
   * it.
   */
  readonly initial?: number | undefined
  /**
   * The limit is kept so low that calls take no longer than this on average, in milliseconds, even
   * if that costs throughput. Above 0; default: none.
   */
  readonly maxLatencyMs?: number | undefined
}

export interface KneeState extends GovernorState {
  /** How long calls take when none of them waits for another; 0 while that is not known. */
  readonly baseMs: number
  /** The share of calls that is dropped whatever the limit. */
  readonly baseDrops: number
  /** Whether the knee has been passed once. Until then the limit grows fast. */
  readonly hasPassed: boolean
  /** By how much it grows next. */
  readonly growth: number
  /** The mean latency since the limit is what it is, smoothed; 0 right after a change. */
  readonly latencyMs: number
  /** Which way the last window pulled, -1, 0 or 1: a small pull must come twice. */
  readonly pull: number
  /** While the limit goes down: what it had before, to see whether that costs throughput. */
  readonly top: Top | undefined
  /** Whether it goes down only to measure. */
  readonly isDip: boolean
  readonly windowsUntilDip: number
  /**
   * The limit under which calls last began to be dropped, and how many windows without drops ago:
   * it stays below for a while.
   */
  readonly ceiling: number
  readonly ceilingWindows: number
  readonly calmWindows: number
  /** While calls are dropped: the limit to go back to when that ends. Otherwise 0. */
  readonly backTo: number
  /** The throughput before the limit last grew; 0 if it has not. */
  readonly throughputBefore: number
}

interface Top {
  readonly limit: number
  /** Calls that ended well, by millisecond. */
  readonly throughput: number
  readonly latencyMs: number
  readonly drops: number
  /** Whether it was reached in the fast growth of the start. */
  readonly isStart?: boolean
}

/**
 * A short queue is wanted, because arrivals have gaps: as a share of the limit. It grows with the
 * root of the limit, as chance does.
 */
const wantedQueue = (limit: number) => Math.min(0.2, 0.8 / Math.sqrt(limit)) + 0.5 / limit
/** Above this share it is too long. */
const longQueue = (limit: number) => Math.min(0.2, 0.8 / Math.sqrt(limit)) + 0.1 + 1 / limit
/** The limit for a known knee. */
const limitFor = (knee: number) => Math.ceil(knee / (1 - Math.min(0.2, 0.8 / Math.sqrt(knee)) - 0.03))
/** A pull this strong needs no second window. */
const STRONG = 0.2
/** It is reached from this share of it on. */
const REACHED = 0.9
/** The limit falls to no less than this share of it at a time: a mistake then costs little. */
const LEAST_FALL = 0.7
const SLOW_GROWTH = 1.1
const MOST_GROWTH = 1.6
/**
 * At the start: twice as many in flight either bring twice the throughput or they do not, which few
 * calls tell.
 */
const FAST_GROWTH = 2
/**
 * Throughput after the fast growth, to that before: nothing waits from here on; more brought
 * nothing below here.
 */
const LINEAR = 1.6
const PLATEAU = 1.05
/** A dip goes to this share of the knee. */
const DIP = 0.8
/** And on to this share of itself, while that costs nothing. */
const DEEPER = 0.75
/** It costs nothing if less than this share of the throughput is lost. */
const FREE = 0.1
/**
 * If so much is lost by a limit that fell because of a queue, then there was no queue: calls have
 * become slower.
 */
const COSTLY = 0.25
/** By more than chance. */
const SLOWER_STILL = 1.25
const WINDOWS_TO_DIP = 25
/** After a surprise. */
const WINDOWS_TO_NEXT_DIP = 5
/** So much more than usual is dropped because of the limit. */
const MORE_DROPS = 0.1
/** The same at the start, when it is not known yet what is usual. */
const MANY_DROPS = 0.3
/** Below this share of the limit in flight on average, a limit that was reached met a burst. */
const BURST = 0.5

/**
 * The limit stays below one that dropped calls for so many windows; twice as many if it does again.
 */
const CEILING_WINDOWS = 5
const MOST_CEILING_WINDOWS = 10

const START = 'start'

export function knee(options: KneeOptions): Governor<KneeState> {
  const { maxLatencyMs = Number.POSITIVE_INFINITY } = options
  const bounds = checkBounds('knee', options, ['initial', 'maxLatencyMs'])
  checkLatency('knee maxLatencyMs', maxLatencyMs)
  const limit = clamped(options.initial ?? 10, bounds)
  return {
    name: 'knee',
    ...bounds,
    initial: {
      limit,
      reason: START,
      isCoarse: true,
      baseMs: 0,
      baseDrops: 0,
      hasPassed: false,
      growth: FAST_GROWTH,
      latencyMs: 0,
      pull: 0,
      top: undefined,
      isDip: false,
      windowsUntilDip: WINDOWS_TO_NEXT_DIP,
      ceiling: Number.POSITIVE_INFINITY,
      ceilingWindows: CEILING_WINDOWS,
      calmWindows: 0,
      backTo: 0,
      throughputBefore: 0,
    },
    next(state, window) {
      const wanted = judged(withDrops(state, window), window, maxLatencyMs)
      const limit = clamped(wanted.limit, bounds)
      // A dip that can go no further shows nothing more.
      const next = wanted.isDip && limit === state.limit ? settled(wanted) : wanted
      const isCoarse = !next.hasPassed || next.backTo > 0
      return limit === state.limit ? { ...next, limit, isCoarse } : { ...next, limit, isCoarse, latencyMs: 0, pull: 0 }
    },
  }
}

/**
 * What is dropped at any limit, as far as is known: all of it at first, and then what does not
 * stand out. Far fewer drops are believed at once.
 */
function withDrops(state: KneeState, window: Window): KneeState {
  const isFirst = state.reason === START
  if (window.ok === 0 || (!isFirst && isDropping(state, window))) return state
  const weight = isFirst || dropsOf(window) < state.baseDrops / 2 ? 1 : 0.1
  return { ...state, baseDrops: blend(state.baseDrops, dropsOf(window), weight), calmWindows: state.calmWindows + 1 }
}

function judged(state: KneeState, window: Window, maxLatencyMs: number): KneeState {
  if (window.ok + window.dropped === 0) return state
  if (isDropping(state, window)) return afterDrops(state, window)
  if (window.ok === 0) return state
  if (state.backTo > 0) return noMoreDrops(state)
  if (window.inflight < REACHED * state.limit) return unused(state, window)
  if (state.top !== undefined && state.isDip) return afterDip(state, state.top, window)
  if (state.top !== undefined && lossOf(state.top, window) > COSTLY) return afterLoss(state, state.top, window, maxLatencyMs)
  if (!state.hasPassed && isPlateau(state, window)) return sought(state, window)
  return full(state, window, maxLatencyMs)
}

// Drops

function isDropping({ baseDrops, hasPassed }: KneeState, window: Window): boolean {
  return window.dropped > 1 && dropsOf(window) > 1.5 * baseDrops + (hasPassed ? MORE_DROPS : MANY_DROPS)
}

/**
 * Down to what ended well, by Little's law; unless the last fall only cost throughput and changed
 * nothing.
 */
function afterDrops(state: KneeState, window: Window): KneeState {
  const { top, limit } = state
  const drops = dropsOf(window)
  if (top !== undefined && window.ok > 0 && drops > 0.5 * top.drops && lossOf(top, window) > 0.5 * (1 - limit / top.limit)) {
    return {
      ...settled(state),
      limit: top.limit,
      baseDrops: drops,
      ceiling: Number.POSITIVE_INFINITY,
      backTo: 0,
      reason: 'drops do not depend on the limit',
    }
  }
  const used = throughputOf(window) * window.latencyMs
  const lower = Math.min(0.95 * limit, Math.max(LEAST_FALL * limit, used))
  if (isNew(state)) return { ...state, limit: Math.floor(lower), reason: 'drops' }
  return { ...fallen(below(state), window, lower), reason: 'drops' }
}

/** Drops count once, however long they went on: an outage is no reason to begin again at one. */
function noMoreDrops(state: KneeState): KneeState {
  const { limit, backTo } = state
  return { ...settled(state), limit: Math.max(limit, backTo), backTo: 0, growth: MOST_GROWTH, reason: 'no more drops' }
}

// The limit is not reached

/**
 * Nothing is known about more. Calls that have the server for themselves show how long they take.
 */
function unused(state: KneeState, { inflight, latencyMs }: Window): KneeState {
  const { limit, baseMs } = state
  const isLight = inflight <= limit / 2
  const weight = isLight || latencyMs < baseMs ? 0.25 : 0
  return {
    ...settled(state),
    baseMs: baseMs === 0 ? latencyMs : blend(baseMs, latencyMs, weight),
    reason: 'not reached',
  }
}

// The limit is reached

function full(state: KneeState, window: Window, maxLatencyMs: number): KneeState {
  const { limit } = state
  const latencyMs = state.latencyMs === 0 ? window.latencyMs : blend(state.latencyMs, window.latencyMs, 0.5)
  const baseMs = isLinear(state, window) ? blend(state.baseMs, window.latencyMs, 0.5) : loweredBase(state.baseMs, window.latencyMs)
  const now: KneeState = { ...state, latencyMs, baseMs }
  if (latencyMs > maxLatencyMs) {
    // What that costs is not asked.
    return { ...settled({ ...now, hasPassed: true }), limit: Math.floor((limit * maxLatencyMs) / latencyMs), reason: 'maxLatencyMs' }
  }
  const queue = isBurst(state, window) ? 0 : 1 - baseMs / latencyMs
  const short = wantedQueue(limit) - queue
  const long = queue - longQueue(limit)
  if (short > 0)
    return latencyMs * (1 + 1 / limit) > maxLatencyMs ? resting(now, window) : pulled(now, 1, short, () => grown(now, window, short))
  if (long > 0) return pulled(now, -1, long, () => shortened(now, window))
  return resting(now, window)
}

/**
 * Only a queue that stands is too long. If the limit was reached, and far fewer were in flight on
 * average (Little's law), calls came together and the queue was empty in between. That average is
 * not known from a sample of the calls, and not with many drops, which may hold places for longer.
 */
function isBurst({ limit, hasPassed }: KneeState, window: Window): boolean {
  const isWhole = window.ok >= window.inflight && dropsOf(window) < MORE_DROPS
  return hasPassed && isWhole && throughputOf(window) * window.latencyMs < BURST * limit
}

/** Latency is noisy: small pulls must come twice. */
function pulled(state: KneeState, pull: number, strength: number, act: () => KneeState): KneeState {
  return !state.hasPassed || strength > STRONG / 2 || state.pull === pull
    ? act()
    : { ...state, pull, windowsUntilDip: state.windowsUntilDip - 1 }
}

function grown(state: KneeState, window: Window, short: number): KneeState {
  const { limit, growth, hasPassed } = state
  const more = hasPassed && short > STRONG / 2 ? Math.min(MOST_GROWTH, 1 + 2 * (growth - 1)) : growth
  const most = state.calmWindows < state.ceilingWindows ? state.ceiling - 1 : Number.POSITIVE_INFINITY
  const next = Math.min(Math.max(limit + 1, Math.floor(limit * growth)), most)
  const throughputBefore = throughputOf(window)
  return { ...settled(state), limit: Math.max(limit, next), growth: more, throughputBefore, reason: 'no queue' }
}

/** The limit was doubled, and that brought nothing: the knee lies below where it began. */
function sought(state: KneeState, window: Window): KneeState {
  const { limit } = state
  const top = { limit, throughput: throughputOf(window), latencyMs: window.latencyMs, drops: 0, isStart: true }
  const lower = Math.floor(limit / FAST_GROWTH / FAST_GROWTH)
  return { ...state, hasPassed: true, growth: SLOW_GROWTH, limit: lower, top, isDip: true, reason: 'more brought nothing' }
}

function shortened(state: KneeState, window: Window): KneeState {
  const { limit, baseMs, latencyMs, hasPassed } = state
  const knee = (limit * baseMs) / latencyMs
  const goal = Math.min(limit - 1, limitFor(knee))
  return { ...fallen(state, window, hasPassed ? Math.max(LEAST_FALL * limit, goal) : goal), reason: 'queue' }
}

function resting(state: KneeState, window: Window): KneeState {
  const { limit, baseMs, latencyMs, windowsUntilDip } = state
  const calm: KneeState = { ...settled(state), hasPassed: true, growth: SLOW_GROWTH, reason: 'at the knee' }
  // The end of the fast growth is looked at at once: its base is from few calls.
  const isStart = !state.hasPassed
  if (windowsUntilDip > 0 && !isStart) return { ...calm, windowsUntilDip: windowsUntilDip - 1 }
  const lower = Math.floor((DIP * limit * baseMs) / latencyMs)
  if (lower < 1 || !isBusy(limit, window)) return calm
  // By Little's law, and by all windows since the last change.
  const throughput = (limit / latencyMs) * (1 - state.baseDrops)
  const top = { limit, throughput, latencyMs, drops: 0, isStart }
  return { ...calm, limit: lower, top, isDip: true, windowsUntilDip: WINDOWS_TO_DIP, reason: 'dip' }
}

// What a fall has shown

/**
 * Deeper while that costs nothing; then calls no longer wait for each other, and their latency is
 * the base.
 */
function afterDip(state: KneeState, top: Top, window: Window): KneeState {
  const { limit, baseMs } = state
  const { latencyMs } = window
  if (lossOf(top, window) < FREE && limit > 1) {
    return { ...state, baseMs: Math.min(baseMs, latencyMs), limit: Math.floor(DEEPER * limit), reason: 'less costs nothing' }
  }
  // The start had not come to the knee after all.
  const isBelow = top.isStart === true && lossOf(top, window) > 0.75 * (1 - limit / top.limit)
  if (isBelow)
    return { ...settled({ ...state, hasPassed: false }), baseMs: latencyMs, limit: top.limit, throughputBefore: 0, reason: 'measured' }
  const isNear = Math.abs(latencyMs / baseMs - 1) < 0.25
  return returned(state, top, isNear ? blend(baseMs, latencyMs, 0.5) : latencyMs, 'measured')
}

/**
 * Fewer in flight cannot make calls slower. If they are, the server has changed since the fall, and
 * what was before says nothing.
 */
function afterLoss(state: KneeState, top: Top, window: Window, maxLatencyMs: number): KneeState {
  if (window.latencyMs > SLOWER_STILL * top.latencyMs) return full({ ...state, top: undefined }, window, maxLatencyMs)
  return returned(state, top, window.latencyMs, 'calls are slower')
}

function returned(state: KneeState, top: Top, baseMs: number, reason: string): KneeState {
  const goal = limitFor(top.throughput * baseMs)
  const isSurprise = Math.abs(baseMs / state.baseMs - 1) > 0.1
  const windowsUntilDip = isSurprise ? WINDOWS_TO_NEXT_DIP : WINDOWS_TO_DIP
  return { ...settled(state), baseMs, limit: Math.max(state.limit, Math.min(top.limit, goal)), windowsUntilDip, reason }
}

// Small parts

/** No longer on the way down. */
function settled(state: KneeState): KneeState {
  return { ...state, top: undefined, isDip: false, growth: state.hasPassed ? SLOW_GROWTH : FAST_GROWTH, pull: 0 }
}

/** Where drops begin: not up to this limit again for a while, but back near to it when they end. */
function below(state: KneeState): KneeState {
  const { limit, ceiling, ceilingWindows, top, backTo } = state
  if (backTo > 0) return state
  const isAgain = Math.abs(limit / ceiling - 1) < 0.1
  const windows = isAgain ? Math.min(MOST_CEILING_WINDOWS, 2 * ceilingWindows) : CEILING_WINDOWS
  const back = Math.ceil(LEAST_FALL * (top?.limit ?? limit))
  return { ...state, ceiling: limit, ceilingWindows: windows, calmWindows: 0, backTo: back }
}

/** Whether calls were dropped in all windows so far: then nothing is known to go back to. */
function isNew({ hasPassed, calmWindows }: KneeState): boolean {
  return !hasPassed && calmWindows === 0
}

/** On the way down; its top is where it began. */
function fallen(state: KneeState, window: Window, lower: number): KneeState {
  const { limit } = state
  const top = state.top ?? { limit, throughput: throughputOf(window), latencyMs: window.latencyMs, drops: dropsOf(window) }
  return { ...state, limit: Math.floor(lower), top, isDip: false, hasPassed: true, growth: SLOW_GROWTH, pull: 0 }
}

/**
 * A latency below the base is the base; a little at a time, because the lowest of many windows is
 * lower than any mean.
 */
function loweredBase(baseMs: number, latencyMs: number): number {
  if (baseMs === 0 || latencyMs < 0.75 * baseMs) return latencyMs
  return latencyMs < baseMs ? blend(baseMs, latencyMs, 0.1) : baseMs
}

/**
 * Whether a much higher limit brought as much more throughput: nothing waits, and this latency is
 * as good a base as the one before.
 */
function isLinear(state: KneeState, window: Window): boolean {
  return !state.hasPassed && state.throughputBefore > 0 && gainOf(state, window) > LINEAR
}

/** Whether a much higher limit brought longer waits and no more throughput. */
function isPlateau(state: KneeState, window: Window): boolean {
  return gainOf(state, window) < PLATEAU && window.latencyMs > 1.2 * state.baseMs && isBusy(state.limit, window)
}

/** By how much throughput has changed since the limit last grew, as a factor. */
function gainOf({ throughputBefore }: KneeState, window: Window): number {
  return throughputOf(window) / throughputBefore
}

/** Whether it is at its limit most of the time, by Little's law. */
function isBusy(limit: number, window: Window): boolean {
  return throughputOf(window) * window.latencyMs > 0.75 * limit
}

function lossOf(top: Top, window: Window): number {
  return 1 - throughputOf(window) / top.throughput
}

function throughputOf({ ok, durationMs }: Window): number {
  return ok / durationMs
}

function dropsOf({ ok, dropped }: Pick<Window, 'ok' | 'dropped'>): number {
  return dropped / (ok + dropped)
}

function blend(old: number, fresh: number, weight: number): number {
  return old + weight * (fresh - old)
}
