/** What the page asks of the worker, and what it is told. */
import type { LimitData } from '../sluice.ts'
import type { Moment } from './cursor.ts'
import type { Run } from './run.ts'
import { tapeArrivals, tapeOf } from './tapes.ts'
import { type Arrivals, arrivalsOf, type Traffic, TrafficError } from './traffic.ts'

export interface Job {
  readonly traffic: Traffic
  readonly limits: readonly LimitData[]
}

/** `look` is about the job that was run last. */
export type Request =
  | { readonly id: number; readonly ask: 'run'; readonly job: Job }
  | { readonly id: number; readonly ask: 'look'; readonly call: number }

export type Answer =
  | { readonly id: number; readonly run: Run }
  | { readonly id: number; readonly moments: readonly Moment[] }
  | { readonly id: number; readonly failure: Failure }

/** Errors do not keep their class on the way between threads. */
export type Failure =
  | { readonly kind: 'traffic'; readonly reason: TrafficError['reason']; readonly value: string }
  | { readonly kind: 'limit'; readonly message: string }

export function failureOf(error: unknown): Failure {
  if (error instanceof TrafficError) return { kind: 'traffic', reason: error.reason, value: error.value }
  return { kind: 'limit', message: error instanceof Error ? error.message : String(error) }
}

export function arrivalsFor(traffic: Traffic): Arrivals {
  if (traffic.kind !== 'tape') return arrivalsOf(traffic)
  const tape = tapeOf(traffic.id)
  if (tape === undefined) throw new TrafficError('none', traffic.id)
  return tapeArrivals(tape)
}
