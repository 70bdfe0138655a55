/** Traffic to try limits on: when calls arrive, and what each costs. */
import { burst, inOrder, steady } from '../sluice.ts'

/** More than this is no picture any more, and a browser has better things to do. */
export const MAX_CALLS = 200_000
export const MAX_SECONDS = 3_600
/** A hand-drawn traffic is so many columns. */
export const COLUMNS = 32
export const MAX_IN_COLUMN = 30

export type Traffic =
  | { readonly kind: 'steady'; readonly perSecond: number; readonly seconds: number }
  | { readonly kind: 'boundary'; readonly count: number; readonly atSecond: number; readonly after: number }
  | { readonly kind: 'flash'; readonly quiet: number; readonly peak: number }
  | { readonly kind: 'crawler'; readonly size: number; readonly everyMs: number; readonly seconds: number }
  | { readonly kind: 'poisson'; readonly perSecond: number; readonly seconds: number; readonly seed: number }
  | { readonly kind: 'drawn'; readonly columns: readonly number[]; readonly seconds: number }
  | { readonly kind: 'pasted'; readonly text: string }
  | { readonly kind: 'tape'; readonly id: string }

export type TrafficKind = Traffic['kind']

export interface Arrivals {
  readonly atUs: Float64Array<ArrayBuffer>
  readonly cost: Float64Array<ArrayBuffer>
  /** Where the time axis ends. */
  readonly lengthUs: number
}

/** What may be entered for each number: least, most, and what a fresh traffic of the kind has. */
export const NUMBERS = {
  perSecond: { min: 1, max: 50_000, first: 25 },
  seconds: { min: 1, max: MAX_SECONDS, first: 4 },
  count: { min: 1, max: 10_000, first: 10 },
  atSecond: { min: 1, max: 600, first: 1 },
  after: { min: 0, max: 1_000, first: 20 },
  quiet: { min: 1, max: 1_000, first: 4 },
  peak: { min: 1, max: 10_000, first: 60 },
  size: { min: 1, max: 1_000, first: 8 },
  everyMs: { min: 1, max: 60_000, first: 500 },
  seed: { min: 1, max: 999_999, first: 1 },
} as const

export type NumberName = keyof typeof NUMBERS

export const NUMBERS_OF: Readonly<Record<TrafficKind, readonly NumberName[]>> = {
  boundary: ['count', 'atSecond', 'after'],
  steady: ['perSecond', 'seconds'],
  flash: ['quiet', 'peak'],
  crawler: ['size', 'everyMs', 'seconds'],
  poisson: ['perSecond', 'seconds', 'seed'],
  drawn: ['seconds'],
  pasted: [],
  tape: [],
}

/** A mistake in the chosen traffic, by name, so that it can be shown in any language. */
export class TrafficError extends Error {
  readonly reason: 'number' | 'many' | 'times' | 'none'
  readonly value: string
  constructor(reason: TrafficError['reason'], value: string) {
    super(`traffic ${reason}: ${value}`)
    this.reason = reason
    this.value = value
  }
}

/** All but tapes, which bring their own calls. */
export function arrivalsOf(traffic: Exclude<Traffic, { kind: 'tape' }>): Arrivals {
  checkNumbers(traffic)
  const { times, lengthMs } = timesOf(traffic)
  if (times.length === 0) throw new TrafficError('none', '')
  if (times.length > MAX_CALLS) throw tooMany(times.length)
  const atUs = Float64Array.from(times, (ms) => Math.round(ms * 1000))
  return { atUs, cost: new Float64Array(atUs.length).fill(1), lengthUs: Math.round(lengthMs * 1000) }
}

function checkNumbers(traffic: Traffic): void {
  for (const name of NUMBERS_OF[traffic.kind]) {
    const value = (traffic as unknown as Record<string, number>)[name] as number
    const { min, max } = NUMBERS[name]
    if (!Number.isFinite(value) || value < min || value > max) throw new TrafficError('number', `${value} (${min} – ${max})`)
  }
}

const tooMany = (count: number) => new TrafficError('many', `${Math.ceil(count)} > ${MAX_CALLS}`)

interface Times {
  readonly times: readonly number[]
  readonly lengthMs: number
}

function timesOf(traffic: Exclude<Traffic, { kind: 'tape' }>): Times {
  switch (traffic.kind) {
    case 'steady':
      return steadyTimes(traffic.perSecond, traffic.seconds)
    case 'boundary':
      return boundaryTimes(traffic.count, traffic.atSecond, traffic.after)
    case 'flash':
      return flashTimes(traffic.quiet, traffic.peak)
    case 'crawler':
      return crawlerTimes(traffic.size, traffic.everyMs, traffic.seconds)
    case 'poisson':
      return poissonTimes(traffic.perSecond, traffic.seconds, traffic.seed)
    case 'drawn':
      return drawnTimes(traffic.columns, traffic.seconds)
    case 'pasted':
      return pastedTimes(traffic.text)
  }
}

function steadyTimes(perSecond: number, seconds: number): Times {
  if (perSecond * seconds > MAX_CALLS) throw tooMany(perSecond * seconds)
  return { times: steady(1000 / perSecond, 0, seconds * 1000), lengthMs: seconds * 1000 }
}

/** The same number 10 ms before and 10 ms after a full second; then, if wanted, a steady flow. */
function boundaryTimes(count: number, atSecond: number, perSecond: number): Times {
  const atMs = atSecond * 1000
  const endMs = atMs + 2_000
  const flow = perSecond === 0 ? [] : steady(1000 / perSecond, atMs + 50, endMs)
  return { times: [...burst(count, atMs - 10), ...burst(count, atMs + 10), ...flow], lengthMs: endMs }
}

/** A quiet shop; at two seconds the sale opens, and the crowd halves every second. */
function flashTimes(quiet: number, peak: number): Times {
  const opensMs = 2_000
  const endsMs = 8_000
  const crowd: number[] = []
  // The k-th call comes when so many were due: peak x 1 s / ln 2 x (1 - 2^-t).
  const all = (peak / Math.LN2) * (1 - 2 ** (-(endsMs - opensMs) / 1000))
  for (let k = 0; k < all; k++) crowd.push(opensMs - 1000 * Math.log2(1 - (k * Math.LN2) / peak))
  return { times: inOrder(steady(1000 / quiet, 0, endsMs), crowd), lengthMs: endsMs + 1_000 }
}

/** A page and its parts, 5 ms apart, again and again. */
function crawlerTimes(size: number, everyMs: number, seconds: number): Times {
  const pages = Math.ceil((seconds * 1000) / everyMs)
  if (pages * size > MAX_CALLS) throw tooMany(pages * size)
  const times: number[] = []
  for (let page = 0; page < pages; page++) {
    for (let part = 0; part < size; part++) times.push(page * everyMs + part * 5)
  }
  return { times: times.sort((a, b) => a - b), lengthMs: Math.max(seconds * 1000, (times.at(-1) as number) + 1) }
}

function poissonTimes(perSecond: number, seconds: number, seed: number): Times {
  if (perSecond * seconds > MAX_CALLS) throw tooMany(perSecond * seconds)
  const random = mulberry32(seed)
  const times: number[] = []
  for (let ms = next(); ms < seconds * 1000 && times.length <= MAX_CALLS; ms += next()) times.push(ms)
  return { times, lengthMs: seconds * 1000 }
  function next(): number {
    return (-Math.log(1 - random()) * 1000) / perSecond
  }
}

/**
 * Small, and the same on every machine: a seed in an address means the same traffic for every
 * reader.
 */
export function mulberry32(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** The calls of a column come evenly spread over it. */
function drawnTimes(columns: readonly number[], seconds: number): Times {
  const widthMs = (seconds * 1000) / COLUMNS
  const times = columns.flatMap((count, column) => Array.from({ length: count }, (_, k) => (column + k / count) * widthMs))
  return { times, lengthMs: seconds * 1000 }
}

/**
 * Milliseconds, seconds or milliseconds since 1970, or dates; separated by anything that is not
 * part of one.
 */
const STAMP = /\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?|-?\d+(?:\.\d+)?(?:e\d+)?|[^\s,;]+/gi

function pastedTimes(text: string): Times {
  const stamps = text.match(STAMP) ?? []
  if (stamps.length > MAX_CALLS) throw tooMany(stamps.length)
  const ms = stamps.map(stampMs).sort((a, b) => a - b)
  // Dates are counted from the full second before the first, so that windows of whole seconds keep
  // their boundaries.
  const first = ms[0] ?? 0
  const origin = first > 1e9 ? Math.floor(first / 1000) * 1000 : 0
  const times = ms.map((at) => Math.round((at - origin) * 1000) / 1000)
  const last = times.at(-1) ?? 0
  if (last > MAX_SECONDS * 1000) throw new TrafficError('times', `${last / 1000} s > ${MAX_SECONDS} s`)
  return { times, lengthMs: last * 1.25 + 100 }
}

function stampMs(stamp: string): number {
  const ms = /^\d{4}-\d\d-\d\d/.test(stamp) ? Date.parse(stamp.replace(' ', 'T')) : Number(stamp)
  if (!Number.isFinite(ms) || ms < 0) throw new TrafficError('times', stamp.slice(0, 40))
  // Since 1970 in seconds, until the year 2286.
  return ms >= 1e9 && ms < 1e10 ? ms * 1000 : ms
}
