/**
 * A permit as callers hold it: a text that says all that is needed to renew and to release it.
 * Nothing of it is kept, so any instance of the service on the same store can do both.
 */
import { jsonIn } from '../json.ts'
import type { Entrusted } from '../sluice.ts'

/** A limiter, and what it has lent. */
export interface HeldPermit {
  readonly limiter: string
  readonly lent: Entrusted
}

type Loan = Entrusted['loans'][number]

export function permitText({ limiter, lent: { plan, loans } }: HeldPermit): string {
  const all = loans.map(({ limit, key, cost, token, degraded }) => [limit, key, cost, token, degraded ? 1 : 0])
  return Buffer.from(JSON.stringify([limiter, plan ?? null, all])).toString('base64url')
}

/** Undefined: it is no such text. */
export function permitIn(text: unknown): HeldPermit | undefined {
  if (typeof text !== 'string' || !/^[\w-]+$/.test(text)) return undefined
  const [limiter, plan, all, ...rest] = arrayIn(Buffer.from(text, 'base64url'))
  if (typeof limiter !== 'string' || (plan !== null && typeof plan !== 'string') || rest.length > 0) return undefined
  const loans = Array.isArray(all) ? all.map(loanIn) : []
  if (loans.length === 0 || !loans.every((loan) => loan !== undefined)) return undefined
  return { limiter, lent: { plan: plan ?? undefined, loans } }
}

function loanIn(json: unknown): Loan | undefined {
  const [limit, key, cost, token, degraded] = Array.isArray(json) ? (json as unknown[]) : []
  if (typeof limit !== 'string' || typeof key !== 'string' || !isWhole(cost) || !isWhole(token)) return undefined
  return { limit, key, cost, token, degraded: degraded === 1 }
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0
}

function arrayIn(bytes: Buffer): unknown[] {
  try {
    const json = jsonIn(bytes)
    return Array.isArray(json) ? json : []
  } catch {
    return []
  }
}
