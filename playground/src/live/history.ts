/**
 * The events of the service, as a bounded history: rates from counts, for each limiter and for all
 * together.
 */

export interface LiveLimiter {
  readonly name: string
  /** Of a rule of a domain, whose name says nothing to people: what does. */
  readonly rule: string | null
  /** Counts since the service started. */
  readonly allowed: number
  readonly denied: number
  readonly shadowed: number
  readonly errors: number
  readonly waiting: number
  readonly waits: { readonly count: number; readonly sumMs: number; readonly maxMs: number }
  readonly store: 'up' | 'full' | 'down'
  readonly keys: number | null
}

export interface LiveEvent {
  readonly atMs: number
  readonly startedAtMs: number
  readonly limiters: readonly LiveLimiter[]
  readonly topRefused:
    | readonly { readonly limiter: string; readonly key: string; readonly count: number; readonly atMost: boolean }[]
    | null
}

/** The change between two events. */
export interface Rates {
  readonly admitted: number
  readonly refused: number
  readonly shadowed: number
  readonly meanWaitMs: number
  readonly maxWaitMs: number
}

/**
 * Ten minutes of seconds: whatever the service does, and however long the page is open, it holds no
 * more.
 */
export const KEPT = 600
/** Beyond this many limiters only the totals are kept. */
export const MAX_LIMITERS = 200

const GAP_S = 10

export const ALL = ''

const NOTHING: Rates = { admitted: 0, refused: 0, shadowed: 0, meanWaitMs: 0, maxWaitMs: 0 }

/** Of a second about which nothing is known: null. */
export type Values = (number | null)[]

/** One limiter's last seconds. */
class Series {
  readonly admitted: Values = []
  readonly refused: Values = []
  readonly maxWaitMs: Values = []
}

export class History {
  readonly seconds: number[] = []
  readonly #series = new Map<string, Series>([[ALL, new Series()]])
  #last: LiveEvent | undefined
  #rates = new Map<string, Rates>()
  #restarts = 0

  get last(): LiveEvent | undefined {
    return this.#last
  }

  /** How often the service began anew while we watched. */
  get restarts(): number {
    return this.#restarts
  }

  rates(name: string): Rates {
    return this.#rates.get(name) ?? NOTHING
  }

  /** Times, and the figures of one limiter, or of all. */
  chart(name: string): [number[], Values, Values, Values] {
    const { admitted, refused, maxWaitMs } = this.#series.get(name) ?? new Series()
    const missing = this.seconds.length - admitted.length
    const padded = (values: Values): Values => [...new Array<null>(missing).fill(null), ...values]
    return [this.seconds, padded(admitted), padded(refused), padded(maxWaitMs)]
  }

  add(event: LiveEvent): void {
    const before = this.#last?.startedAtMs === event.startedAtMs ? this.#last : undefined
    if (this.#last !== undefined && before === undefined) this.#restarts += 1
    this.#last = event
    const passedS = before === undefined ? Number.NaN : (event.atMs - before.atMs) / 1000
    // Two events of the same moment say nothing about a pace.
    if (passedS <= 0) return
    // Nor does a mean over a time in which nobody watched: there the line has a gap.
    this.#rates = ratesBetween(passedS > GAP_S ? undefined : before, event, passedS)
    this.#keep(event)
  }

  #keep({ atMs, limiters }: LiveEvent): void {
    // The clock of the service was set back. An axis runs forward, so it begins anew.
    if (atMs / 1000 <= (this.seconds.at(-1) ?? Number.NEGATIVE_INFINITY)) {
      this.seconds.length = 0
      this.#series.clear()
    }
    this.seconds.push(atMs / 1000)
    const held = limiters.slice(0, MAX_LIMITERS).map(({ name }) => name)
    for (const name of this.#series.keys()) if (name !== ALL && !held.includes(name)) this.#series.delete(name)
    for (const name of [ALL, ...held]) this.#append(name)
    if (this.seconds.length > KEPT) this.seconds.shift()
  }

  #append(name: string): void {
    const series = this.#series.get(name) ?? new Series()
    this.#series.set(name, series)
    const rates = this.#rates.get(name)
    series.admitted.push(rates?.admitted ?? null)
    series.refused.push(rates?.refused ?? null)
    series.maxWaitMs.push(rates?.maxWaitMs ?? null)
    for (const values of [series.admitted, series.refused, series.maxWaitMs]) if (values.length > KEPT) values.shift()
  }
}

function ratesBetween(before: LiveEvent | undefined, now: LiveEvent, passedS: number): Map<string, Rates> {
  const earlier = new Map(before?.limiters.map((limiter) => [limiter.name, limiter]))
  const rates = new Map<string, Rates>()
  for (const limiter of now.limiters) {
    const since = earlier.get(limiter.name)
    if (since !== undefined) rates.set(limiter.name, ratesOf(since, limiter, passedS))
  }
  if (before !== undefined) rates.set(ALL, together([...rates.values()]))
  return rates
}

function ratesOf(since: LiveLimiter, now: LiveLimiter, passedS: number): Rates {
  const waited = now.waits.count - since.waits.count
  return {
    admitted: pace(since.allowed, now.allowed, passedS),
    refused: pace(since.denied, now.denied, passedS),
    shadowed: pace(since.shadowed, now.shadowed, passedS),
    meanWaitMs: waited > 0 ? (now.waits.sumMs - since.waits.sumMs) / waited : 0,
    maxWaitMs: now.waits.maxMs,
  }
}

/** A limiter that was taken away and came back begins at zero. */
const pace = (since: number, now: number, passedS: number): number => Math.max(0, now - since) / passedS

function together(all: readonly Rates[]): Rates {
  const sum = (name: 'admitted' | 'refused' | 'shadowed') => all.reduce((total, rates) => total + rates[name], 0)
  return {
    admitted: sum('admitted'),
    refused: sum('refused'),
    shadowed: sum('shadowed'),
    meanWaitMs: 0,
    maxWaitMs: Math.max(0, ...all.map(({ maxWaitMs }) => maxWaitMs)),
  }
}
