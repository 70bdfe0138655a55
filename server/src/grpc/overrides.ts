/**
 * Limits that a caller brings along. All of a domain count under one name, so a caller who changes
 * the numbers keeps what was used. Limiters are kept for numbers that were seen lately.
 */
import { createHash } from 'node:crypto'
import { RULES_PREFIX } from '../config/config.ts'
import type { Limiters } from '../running/limiters.ts'
import type { RunningLimiter } from '../running/running-limiter.ts'
import { fixedWindow, MAX_PERMITS, shown } from '../sluice.ts'
import { InvalidRequest } from './invalid-request.ts'
import type { Override, Unit } from './messages.ts'
import { UNIT_SECONDS } from './units.ts'

const MOST_KEPT = 1_000

export class Overrides {
  readonly #limiters: Limiters
  readonly #kept = new Map<string, RunningLimiter>()

  constructor(limiters: Limiters) {
    this.#limiters = limiters
  }

  /** Undefined: nothing is allowed at all. */
  limiterFor(domain: string, { requests_per_unit, unit }: Override): RunningLimiter | undefined {
    const seconds = UNIT_SECONDS[unit as Unit]
    if (seconds === undefined) throw new InvalidRequest(`limit.unit ${shown(unit)} must be one of ${Object.keys(UNIT_SECONDS).join(', ')}`)
    if (requests_per_unit > MAX_PERMITS) {
      throw new InvalidRequest(`limit.requests_per_unit ${requests_per_unit} must be at most ${MAX_PERMITS}`)
    }
    if (requests_per_unit === 0) return undefined
    const id = JSON.stringify([domain, requests_per_unit, unit, this.#limiters.shadow])
    const limiter = this.#kept.get(id) ?? this.#made(domain, requests_per_unit, seconds)
    // Again at the end of the line: the first is the one that was not asked for the longest.
    this.#kept.delete(id)
    this.#kept.set(id, limiter)
    this.#dropOldest()
    this.#limiters.usedUnlisted(domain, limiter)
    return limiter
  }

  #made(domain: string, requests: number, seconds: number): RunningLimiter {
    const limits = { default: fixedWindow({ limit: requests, window: `${seconds}s` }) }
    const digest = createHash('sha256').update(domain).digest('hex').slice(0, 16)
    const name = `${RULES_PREFIX}override.${digest}`
    const rule = `${domain}: limits in requests`
    return this.#limiters.unlisted({ name, rule, limits, plans: {}, options: {}, follow: undefined, shadow: this.#limiters.shadow })
  }

  #dropOldest(): void {
    if (this.#kept.size <= MOST_KEPT) return
    // Not closed: a decision may be under way at it. Nobody waits there, so nothing is left behind.
    this.#kept.delete(this.#kept.keys().next().value as string)
  }
}
