/** Lets the rate of a limiter follow the load of this process, as its configuration says. */
import { type FollowConfig, type LimiterConfig, type NamedLimits, titleOf } from '../config/config.ts'
import type { Tally } from '../metrics/tally.ts'
import { atRate, type Following, followLoad, type Limit, limitOf, paceOf, type Rate, RULE, type Scope } from '../sluice.ts'
import type { Ground } from './running-limiter.ts'

interface FollowingLimiter {
  scope(): Scope
}

export class Follower {
  readonly #limiter: FollowingLimiter
  readonly #ground: Ground
  readonly #tally: Tally
  #following: { readonly limit: string; readonly now: Following } | undefined = undefined

  constructor(limiter: FollowingLimiter, ground: Ground, tally: Tally) {
    this.#limiter = limiter
    this.#ground = ground
    this.#tally = tally
  }

  /** Changes are told under the name that people know the limiter by. */
  begin(config: LimiterConfig): void {
    const { follow } = config
    const limit = followedIn(config)
    if (follow === undefined || limit === undefined) return
    const { signals, clock, journal } = this.#ground
    this.#tally.follows(limit)
    const now = followLoad(this.#limiter as never, {
      ...follow,
      limit,
      signal: signals[follow.signal](),
      clock,
      onChange: (change) => {
        this.#tally.limitMoved(change)
        journal.limitMoved({ ...change, limiter: titleOf(config) })
      },
    })
    this.#following = { limit, now }
  }

  /**
   * The numbers of the configuration that comes next: a limit that goes on to follow the load does
   * so from the rate that it has.
   */
  end(next: LimiterConfig): NamedLimits {
    const before = this.#following
    this.#following = undefined
    before?.now.close()
    const { limits, follow, options } = next
    if (before === undefined || follow === undefined || followedIn(next) !== before.limit) return limits
    const { type, [RULE]: rule } = limits[before.limit] as Limit
    const aheadUs = options.maxAheadMs === undefined ? undefined : Math.round(options.maxAheadMs * 1000)
    return { ...limits, [before.limit]: limitOf({ type }, atRate(rule, within(follow, before.now.rate), aheadUs)) }
  }
}

/**
 * A rate within the bounds of a follower. Beyond them there may be rates that the limit cannot
 * have.
 */
function within({ min, max, share = 1 }: FollowConfig, rate: number): number {
  const perSecond = (bound: Rate) => {
    const { permits, periodUs } = paceOf(bound, 'rate')
    return (permits / periodUs) * 1_000_000 * share
  }
  return Math.max(perSecond(min), Math.min(perSecond(max), rate))
}

/** The name of the limit that follows the load. */
function followedIn({ follow, limits }: LimiterConfig): string | undefined {
  return follow === undefined ? undefined : (follow.limit ?? Object.keys(limits)[0])
}
