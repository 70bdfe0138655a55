/**
 * A rate that follows a signal: `max` up to one level of it, `min` from another on, linear between
 * them, and never in leaps.
 */
import { type Limit, limitOf, type Rule } from '../algorithms/algorithm.ts'
import { atRate, checkRate, rateOf } from '../algorithms/at-rate.ts'
import { invalid, onlyKnown, paceOf, type Rate } from '../algorithms/rate.ts'
import { type Clock, type StopTimer, systemClock } from '../clock/clock.ts'
import { SluiceError, shown, warn } from '../errors.ts'
import { checkStill, countChange, type MovingLimit, moves } from '../limiter/moving.ts'
import { type Signal, type SignalSource, signalOf } from './signal.ts'

/** The parts of a limiter that are needed. */
export interface FollowingLimiter {
  readonly name: string
  readonly store: { readonly shared: boolean }
  scope(): { readonly limits: readonly { readonly name: string; readonly rule: Rule }[]; readonly aheadUs?: number }
  update(limits: never): void
}

export interface RateChange {
  /** The name of the limiter. */
  readonly limiter: string
  /** The name of the limit. */
  readonly limit: string
  /** Permits per second. */
  readonly from: number
  readonly to: number
  /** The value of the signal. */
  readonly signal: number
  readonly reason: string
}

export interface FollowOptions {
  /** The name of the limit to change; default: the only one. */
  readonly limit?: string | undefined
  /** The rate from `to` on, such as `'20/s'`. */
  readonly min: Rate
  /** The rate up to `from`. */
  readonly max: Rate
  /** The signal to follow: one of `sluice/load`, or a function. */
  readonly signal: SignalSource
  /** The level of the signal up to which the rate is `max`. */
  readonly from: number
  /** The level from which on it is `min`. Lower than `from` for signals that fall with the load. */
  readonly to: number
  /** How often the signal is read, in milliseconds. From 10 to 600,000; default 1,000. */
  readonly everyMs?: number | undefined
  /**
   * The share of `min` and `max` that this process has. Above 0, at most 1; default 1. Required
   * with a store that others share: the load is that of this process alone.
   */
  readonly share?: number | undefined
  /** Called after each change. An error it throws becomes a warning. */
  readonly onChange?: ((event: RateChange) => void) | undefined
  /** Where time comes from. Default: the process's monotonic clock. */
  readonly clock?: Clock | undefined
}

export interface Following {
  /** Permits per second, now. */
  readonly rate: number
  /** The signal at its last reading; undefined if there was none, or if nothing was known. */
  readonly signal: number | undefined
  readonly reason: string
  /** Ends it, and frees what the signal holds. The rate stays as it is. */
  close(): void
  [Symbol.dispose](): void
}

const OPTION_NAMES = ['limit', 'min', 'max', 'signal', 'from', 'to', 'everyMs', 'share', 'onChange', 'clock']

/** At most so much a second, as a share of the rate. */
const MOST_PER_SECOND = 0.1
/** Smaller changes wait: each one rounds what keys have used up to whole permits. */
const LEAST_CHANGE = 0.01

export function followLoad(limiter: FollowingLimiter, options: FollowOptions): Following {
  return new RunningFollower(limiter, checked(limiter, options))
}

interface Checked {
  readonly limit: string
  readonly minPerSecond: number
  readonly maxPerSecond: number
  readonly signal: Signal
  readonly from: number
  readonly to: number
  readonly everyMs: number
  readonly onChange: ((event: RateChange) => void) | undefined
  readonly clock: Clock
}

function checked(limiter: FollowingLimiter, options: FollowOptions): Checked {
  if (typeof limiter?.scope !== 'function') throw invalid('what followLoad is given', limiter, 'must be a limiter')
  onlyKnown(options, OPTION_NAMES, 'followLoad')
  const { signal, from, to, everyMs = 1_000, share, onChange, clock = systemClock } = options
  if (limiter.store.shared && share === undefined) {
    throw new SluiceError(
      'CONFIG',
      `limiter '${limiter.name}' is on a store that others share, and the load is that of this process: give each of n processes a limiter of its own ` +
        'and share: 1 / n, or let one process follow for all, with share: 1',
    )
  }
  const perSecond = (rate: Rate, what: string) => inRange(rate, what) * shareOf(share)
  const [minPerSecond, maxPerSecond] = [perSecond(options.min, 'followLoad min'), perSecond(options.max, 'followLoad max')]
  if (minPerSecond > maxPerSecond) throw invalid('followLoad min', options.min, `must be at most max (${shown(options.max)})`)
  checkLevels(from, to)
  if (typeof signal !== 'function' && typeof signal?.read !== 'function') {
    throw invalid('followLoad signal', signal, 'must be a signal such as eventLoopDelay(), or a function that answers a number')
  }
  if (typeof everyMs !== 'number' || !(everyMs >= 10 && everyMs <= 600_000)) {
    throw invalid('followLoad everyMs', everyMs, 'must be from 10 to 600,000 milliseconds')
  }
  if (onChange !== undefined && typeof onChange !== 'function') throw invalid('followLoad onChange', onChange, 'must be a function')
  const limit = nameIn(limiter, options.limit)
  checkStill(limiter, limit, 'followLoad')
  checkHasRate(limiter, limit)
  checkRates(limiter, limit, { min: minPerSecond, max: maxPerSecond }, options)
  checkUnused(signal)
  return { limit, minPerSecond, maxPerSecond, signal: signalOf(signal), from, to, everyMs, onChange, clock }
}

function inRange(rate: Rate, what: string): number {
  const { permits, periodUs } = paceOf(rate, what)
  return (permits / periodUs) * 1_000_000
}

function shareOf(share = 1): number {
  if (typeof share === 'number' && share > 0 && share <= 1) return share
  throw invalid('followLoad share', share, 'must be above 0 and at most 1')
}

function checkLevels(from: number, to: number): void {
  if (!Number.isFinite(from)) throw invalid('followLoad from', from, 'must be a number: a level of the signal')
  if (!Number.isFinite(to) || to === from)
    throw invalid('followLoad to', to, `must be a number other than from (${from}): a level of the signal`)
}

function nameIn(limiter: FollowingLimiter, name: string | undefined): string {
  const names = limiter.scope().limits.map((limit) => limit.name)
  const found = name ?? (names.length === 1 ? names[0] : undefined)
  if (found !== undefined && names.includes(found)) return found
  throw new SluiceError('CONFIG', `followLoad limit ${shown(name)} must be one of the limits: ${names.join(', ')}`)
}

function checkHasRate(limiter: FollowingLimiter, name: string): void {
  const { rule } = ruleIn(limiter, name)
  const { type, untilReleased } = rule.algorithm
  if (untilReleased === true) {
    throw new SluiceError(
      'CONFIG',
      `followLoad limit ${shown(name)} is a ${type}, which has no rate: govern changes how many are in flight`,
    )
  }
}

/** Both ends are rates that the limit can have: a timer is no place to find out. */
function checkRates(limiter: FollowingLimiter, name: string, perSecond: Record<'min' | 'max', number>, written: FollowOptions): void {
  const { rule } = ruleIn(limiter, name)
  for (const end of ['min', 'max'] as const) {
    checkRate(rule, perSecond[end], `followLoad ${end} ${shown(written[end])}`, limiter.scope().aheadUs)
  }
}

function ruleIn(limiter: FollowingLimiter, name: string): { readonly rule: Rule } {
  return limiter.scope().limits.find((limit) => limit.name === name) as { readonly rule: Rule }
}

/** Signals that are followed. */
const followed = new WeakSet<SignalSource>()

/** To read a signal begins its next interval, and to close one ends it for all. */
function checkUnused(signal: SignalSource): void {
  if (typeof signal === 'function' || !followed.has(signal)) return
  throw new SluiceError('CONFIG', 'followLoad signal is followed already, and each reading begins a new interval: make one for each limit')
}

class RunningFollower implements Following {
  readonly #limiter: FollowingLimiter
  readonly #options: Checked
  /** The rate for the present signal. The limit has it, but for small changes. */
  #rate: number
  #applied: number
  #signal: number | undefined
  #reason = 'start'
  #lastUs: number
  #stop: StopTimer = () => {}
  #isClosed = false
  readonly #changes = new Map<string, number>()
  readonly #unmoved: () => void

  constructor(limiter: FollowingLimiter, options: Checked) {
    this.#limiter = limiter
    this.#options = options
    const { minPerSecond, maxPerSecond, clock } = options
    this.#applied = rateOf(ruleIn(limiter, options.limit).rule)
    this.#rate = Math.max(minPerSecond, Math.min(maxPerSecond, this.#applied))
    if (this.#rate !== this.#applied) this.#apply()
    this.#lastUs = clock.nowUs()
    this.#unmoved = moves(limiter, this.#moving())
    followed.add(options.signal)
    this.#wait()
  }

  get rate(): number {
    return this.#applied
  }

  get signal(): number | undefined {
    return this.#signal
  }

  get reason(): string {
    return this.#reason
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#stop()
    this.#unmoved()
    followed.delete(this.#options.signal)
    this.#options.signal.close?.()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  /** For metrics, and for answers to refusals. */
  #moving(): MovingLimit {
    const following = this
    return {
      limit: this.#options.limit,
      changes: this.#changes,
      get now() {
        return following.rate
      },
      get isReduced() {
        return following.rate < following.#options.maxPerSecond
      },
    }
  }

  #wait(): void {
    const { clock, everyMs } = this.#options
    this.#stop = clock.setTimer(() => this.#look(), everyMs * 1000, false)
  }

  #look(): void {
    if (this.#isClosed) return
    const nowUs = this.#options.clock.nowUs()
    const seconds = Math.max(0, nowUs - this.#lastUs) / 1_000_000
    this.#lastUs = nowUs
    const signal = this.#read()
    if (signal !== undefined) this.#tryToFollow(signal, seconds)
    if (!this.#isClosed) this.#wait()
  }

  /**
   * An error thrown in a timer is caught by no caller. Where the limiter has been closed there is
   * nothing left to follow.
   */
  #tryToFollow(signal: number, seconds: number): void {
    try {
      this.#follow(signal, seconds)
    } catch (error) {
      if (error instanceof SluiceError && error.code === 'CLOSED') this.close()
      else warn('SLUICE_LIMIT', `limiter '${this.#limiter.name}' refused the rate of followLoad: ${String(error)}`, error)
    }
  }

  /** A signal that fails or answers nonsense changes nothing. */
  #read(): number | undefined {
    try {
      const signal = this.#options.signal.read()
      this.#signal = typeof signal === 'number' && !Number.isNaN(signal) ? signal : undefined
    } catch (error) {
      this.#signal = undefined
      warn('SLUICE_SIGNAL', `the signal of limiter '${this.#limiter.name}' threw: ${String(error)}`, error)
    }
    return this.#signal
  }

  #follow(signal: number, seconds: number): void {
    const { minPerSecond, maxPerSecond } = this.#options
    const wanted = wantedRate(signal, this.#options)
    const lowest = this.#rate * (1 - MOST_PER_SECOND) ** seconds
    const highest = this.#rate * (1 + MOST_PER_SECOND) ** seconds
    this.#rate = Math.max(minPerSecond, Math.min(maxPerSecond, Math.max(lowest, Math.min(highest, wanted))))
    const isThere = this.#rate === minPerSecond || this.#rate === maxPerSecond
    const from = this.#applied
    if (this.#rate === from || (!isThere && Math.abs(this.#rate / from - 1) < LEAST_CHANGE)) return
    this.#reason = this.#rate < from ? 'more load' : 'less load'
    this.#apply()
    countChange(this.#changes, this.#reason)
    this.#tell(from, signal)
  }

  /** All other limits stay as they are, and so do the plans. */
  #apply(): void {
    const { limit } = this.#options
    const { limits: rules, aheadUs } = this.#limiter.scope()
    const limits = rules.map(({ name, rule }) => [name, asLimit(name === limit ? atRate(rule, this.#rate, aheadUs) : rule)] as const)
    this.#limiter.update(Object.fromEntries(limits) as never)
    this.#applied = this.#rate
  }

  #tell(from: number, signal: number): void {
    const { limit, onChange } = this.#options
    const limiter = this.#limiter.name
    try {
      onChange?.({ limiter, limit, from, to: this.#applied, signal, reason: this.#reason })
    } catch (error) {
      warn('SLUICE_LISTENER', `onChange of followLoad for limiter '${limiter}' threw: ${String(error)}`, error)
    }
  }
}

/** Linear between the two levels. */
function wantedRate(signal: number, { from, to, minPerSecond, maxPerSecond }: Checked): number {
  const share = Math.max(0, Math.min(1, (signal - from) / (to - from)))
  return maxPerSecond + share * (minPerSecond - maxPerSecond)
}

function asLimit(rule: Rule): Limit {
  return limitOf({ type: rule.algorithm.type }, rule)
}
