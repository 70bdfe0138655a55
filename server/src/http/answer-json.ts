/**
 * What JSON.stringify would make of an answer, in a fraction of the time: in a batch, writing took
 * longer than deciding. All texts in a decision are names of limiters and limits, which hold no
 * character that JSON would escape.
 */
import type { Answer, Refunded } from '../running/request.ts'
import type { DecisionPart } from '../sluice.ts'
import type { Problem } from './problem.ts'

type Figures = Omit<DecisionPart, 'outcome'>

export function answerJson(answer: Answer | Refunded | { readonly error: Problem }): string {
  if (!('outcome' in answer)) return JSON.stringify(answer)
  const { limiter, allowed, outcome, reason, atMs, policy, parts, degraded, shadow } = answer
  const figures = figuresJson(answer)
  const why = reason === undefined ? '' : `,"reason":"${reason}"`
  return `{"limiter":"${limiter}","allowed":${allowed},"outcome":"${outcome}",${figures},"atMs":${msJson(atMs)},"policy":"${policy}","parts":{${partsJson(parts, answer, figures)}},"degraded":${degraded}${why},"shadow":${shadow}${permitJson(answer)}}`
}

function permitJson({ permit, token, leaseMs }: Answer): string {
  return permit === undefined ? '' : `,"permit":"${permit}","token":${token},"leaseMs":${leaseMs}`
}

/** A single limit has the figures of the whole, whose text is there already. */
function partsJson(parts: Answer['parts'], whole: Figures, figuresOfWhole: string): string {
  let text = ''
  for (const name of Object.keys(parts)) {
    const part = parts[name] as DecisionPart
    const figures = areSame(part, whole) ? figuresOfWhole : figuresJson(part)
    text += `${text === '' ? '' : ','}"${name}":{"outcome":"${part.outcome}",${figures}}`
  }
  return text
}

function areSame(a: Figures, b: Figures): boolean {
  return (
    a.remaining === b.remaining &&
    a.limit === b.limit &&
    a.retryAfterMs === b.retryAfterMs &&
    a.resetAfterMs === b.resetAfterMs &&
    a.delayMs === b.delayMs
  )
}

/** Infinity is null in JSON. */
function figuresJson({ limit, remaining, retryAfterMs, resetAfterMs, delayMs }: Figures): string {
  const retry = retryAfterMs === Number.POSITIVE_INFINITY ? 'null' : msJson(retryAfterMs)
  return `"limit":${limit},"remaining":${remaining},"retryAfterMs":${retry},"resetAfterMs":${msJson(resetAfterMs)},"delayMs":${msJson(delayMs)}`
}

const DIGITS = Array.from({ length: 1_000 }, (_, n) => `${n}`.padStart(3, '0'))
const DECIMALS = DIGITS.map((digits) => (digits === '000' ? '' : `.${digits}`))
/** Up to here a whole number becomes text without a detour. */
const SMALL = 1_000_000_000
/**
 * From here on, in the year 2109, a number of milliseconds does not hold its microseconds exactly
 * enough to find them again.
 */
const LARGE = 2 ** 42

/**
 * Times are whole microseconds, so three decimals say all. Finding the shortest text of a fraction
 * takes several times as long.
 */
function msJson(ms: number): string {
  if (ms >= LARGE) return `${ms}`
  const us = Math.round(ms * 1000)
  const wholeMs = Math.floor(us / 1000)
  const decimals = DECIMALS[us - wholeMs * 1000]
  if (wholeMs < SMALL) return `${wholeMs}${decimals}`
  const seconds = Math.floor(wholeMs / 1000)
  return `${seconds}${DIGITS[wholeMs - seconds * 1000]}${decimals}`
}
