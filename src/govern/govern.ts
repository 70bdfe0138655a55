/**
 * Lets a governor set the highest number of calls in flight of a limiter: listens to releases, and
 * calls `update`.
 */
import { type Limit, limitOf, type Rule } from '../algorithms/algorithm.ts'
import { invalid, onlyKnown, permitsOf } from '../algorithms/rate.ts'
import { type Clock, systemClock } from '../clock/clock.ts'
import { SluiceError, shown, warn } from '../errors.ts'
import { checkStill, countChange, type MovingLimit, moves } from '../limiter/moving.ts'
import type { Governor, GovernorState, Window } from './governor.ts'
import { type Release, Windows } from './windows.ts'

/** The parts of a limiter that are needed. */
export interface GovernedLimiter {
  readonly name: string
  scope(): { readonly limits: readonly { readonly name: string; readonly rule: Rule }[] }
  update(limits: never): void
  listen(listener: { onRelease(event: Release): void }): () => void
}

export interface ChangeEvent {
  /** The name of the limiter. */
  readonly limiter: string
  /** The name of the limit. */
  readonly limit: string
  readonly from: number
  readonly to: number
  readonly reason: string
  /** The window that led to it. */
  readonly window: Window
}

export interface GovernOptions<S extends GovernorState = GovernorState> {
  /** The name of the limit to change; default: the only one. */
  readonly limit?: string | undefined
  /** The governor: `knee({ min: 5, max: 500 })`. */
  readonly by: Governor<S>
  /** The least length of a window, in milliseconds. From 10 to 60,000; default 500. */
  readonly windowMs?: number | undefined
  /** Called after each change. An error it throws becomes a warning. */
  readonly onChange?: ((event: ChangeEvent) => void) | undefined
  /** Where time comes from. Default: the process's monotonic clock. */
  readonly clock?: Clock | undefined
}

/** A limit that is governed: what it is now, and the way to end that. */
export interface Governed {
  /** The limit now. */
  readonly limit: number
  /** Why it is what it is. */
  readonly reason: string
  /** How many were in flight at most in the last window. */
  readonly inflight: number
  /** Ends it. The limit stays as it is. */
  close(): void
  [Symbol.dispose](): void
}

const OPTION_NAMES = ['limit', 'by', 'windowMs', 'onChange', 'clock']

export function govern<S extends GovernorState>(limiter: GovernedLimiter, options: GovernOptions<S>): Governed {
  return new RunningGovernor(limiter, checked(limiter, options), options.by)
}

interface Checked {
  readonly limit: string
  readonly windowMs: number
  readonly onChange: ((event: ChangeEvent) => void) | undefined
  readonly clock: Clock
}

function checked<S extends GovernorState>(limiter: GovernedLimiter, options: GovernOptions<S>): Checked {
  if (typeof limiter?.listen !== 'function') throw invalid('what govern is given', limiter, 'must be a limiter')
  onlyKnown(options, OPTION_NAMES, 'govern')
  const { by, windowMs = 500, onChange, clock = systemClock } = options
  if (typeof by?.next !== 'function') throw invalid('govern by', by, 'must be a governor such as knee({ min: 5, max: 500 })')
  if (typeof windowMs !== 'number' || !(windowMs >= 10 && windowMs <= 60_000)) {
    throw invalid('govern windowMs', windowMs, 'must be from 10 to 60,000 milliseconds')
  }
  if (onChange !== undefined && typeof onChange !== 'function') throw invalid('govern onChange', onChange, 'must be a function')
  const limit = nameIn(limiter, options.limit)
  checkStill(limiter, limit, 'govern')
  return { limit, windowMs, onChange, clock }
}

/** A limit whose permits are given back: others have no releases to learn from. */
function nameIn(limiter: GovernedLimiter, name: string | undefined): string {
  const { limits } = limiter.scope()
  const found = name === undefined && limits.length === 1 ? limits[0] : limits.find((limit) => limit.name === name)
  if (found === undefined) {
    throw new SluiceError(
      'CONFIG',
      `govern limit ${shown(name)} must be one of the limits: ${limits.map((limit) => limit.name).join(', ')}`,
    )
  }
  const { type, untilReleased } = found.rule.algorithm as { readonly type: string; readonly untilReleased?: boolean }
  if (untilReleased === true) return found.name
  throw new SluiceError(
    'CONFIG',
    `govern limit ${shown(found.name)} is a ${type}, but must be one of calls in flight, whose permits are released`,
  )
}

class RunningGovernor<S extends GovernorState> implements Governed {
  readonly #limiter: GovernedLimiter
  readonly #options: Checked
  readonly #by: Governor<S>
  readonly #windows: Windows
  readonly #ends: readonly (() => void)[]
  readonly #changes = new Map<string, number>()
  #state: S
  #inflight = 0

  constructor(limiter: GovernedLimiter, options: Checked, by: Governor<S>) {
    this.#limiter = limiter
    this.#options = options
    this.#by = by
    this.#state = by.initial
    this.#windows = new Windows(options.windowMs, this.#nowMs)
    this.#apply(by.initial)
    this.#ends = [limiter.listen({ onRelease: (event) => this.#heard(event) }), moves(limiter, this.#moving())]
  }

  get limit(): number {
    return this.#state.limit
  }

  get reason(): string {
    return this.#state.reason
  }

  get inflight(): number {
    return this.#inflight
  }

  close(): void {
    for (const end of this.#ends) end()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  /** For metrics, and for answers to refusals. */
  #moving(): MovingLimit {
    const governed = this
    return {
      limit: this.#options.limit,
      // A refusal by a governed limit is always one of the server's own.
      isReduced: true,
      changes: this.#changes,
      get now() {
        return governed.limit
      },
      get inflight() {
        return governed.inflight
      },
    }
  }

  get #nowMs(): number {
    return this.#options.clock.nowUs() / 1000
  }

  #heard(event: Release): void {
    const window = this.#windows.add(event, this.#nowMs)
    if (window === undefined) return
    const from = this.#state.limit
    const next = this.#by.next(this.#state, window)
    this.#inflight = window.inflight
    if (next.limit !== from && !this.#isApplied(next)) return
    this.#state = next
    this.#windows.isCoarse = next.isCoarse === true
    if (next.limit !== from) this.#changed(from, window)
  }

  /**
   * A limit that the limiter refuses is not taken over: the governor goes on from the one that is
   * in force.
   */
  #isApplied(next: S): boolean {
    try {
      this.#apply(next)
      return true
    } catch (error) {
      if (error instanceof SluiceError && error.code === 'CLOSED') this.close()
      else warn('SLUICE_LIMIT', `limiter '${this.#limiter.name}' refused the limit of govern: ${String(error)}`, error)
      return false
    }
  }

  #changed(from: number, window: Window): void {
    this.#windows.limitChanged(this.#nowMs)
    countChange(this.#changes, this.#state.reason)
    const { limit, onChange } = this.#options
    try {
      onChange?.({ limiter: this.#limiter.name, limit, from, to: this.#state.limit, reason: this.#state.reason, window })
    } catch (error) {
      warn('SLUICE_LISTENER', `onChange of govern for limiter '${this.#limiter.name}' threw: ${String(error)}`, error)
    }
  }

  /** All other limits stay as they are, and so do the plans. */
  #apply(state: S): void {
    const { limit } = this.#options
    const limits = this.#limiter
      .scope()
      .limits.map(({ name, rule }) => [name, name === limit ? withCapacity(rule, state.limit) : asLimit(rule)])
    this.#limiter.update(Object.fromEntries(limits) as never)
  }
}

function asLimit(rule: Rule): Limit {
  return limitOf({ type: rule.algorithm.type }, rule)
}

/** The first of the figures of a rule is its capacity. */
function withCapacity({ algorithm, figures }: Rule, capacity: number): Limit {
  return asLimit(algorithm.ruleOf([permitsOf(capacity, 'the limit of the governor'), ...figures.slice(1)]))
}
