/**
 * What JSON.stringify would make of an answer, in a quarter of the time: in a batch, writing took longer than deciding. All texts in a decision
 * are names of limiters and limits, which hold no character that JSON would escape.
 */
import type { Answer, Refunded } from '../running/request.ts'
import type { DecisionPart } from '../sluice.ts'
import type { Problem } from './problem.ts'

export function answerJson(answer: Answer | Refunded | { readonly error: Problem }): string {
  if (!('outcome' in answer)) return JSON.stringify(answer)
  const { limiter, allowed, outcome, atMs, policy, parts, degraded, shadow } = answer
  return `{"limiter":"${limiter}","allowed":${allowed},"outcome":"${outcome}",${figures(answer)},"atMs":${atMs},"policy":"${policy}","parts":{${partsJson(parts)}},"degraded":${degraded},"shadow":${shadow}}`
}

function partsJson(parts: Answer['parts']): string {
  let text = ''
  for (const name of Object.keys(parts)) {
    const part = parts[name] as DecisionPart
    text += `${text === '' ? '' : ','}"${name}":{"outcome":"${part.outcome}",${figures(part)}}`
  }
  return text
}

/** Infinity is null in JSON. */
function figures({ limit, remaining, retryAfterMs, resetAfterMs, delayMs }: Omit<DecisionPart, 'outcome'>): string {
  const retry = retryAfterMs === Number.POSITIVE_INFINITY ? null : retryAfterMs
  return `"limit":${limit},"remaining":${remaining},"retryAfterMs":${retry},"resetAfterMs":${resetAfterMs},"delayMs":${delayMs}`
}
