/** Messages between the page and the worker. */
import type { LimitData } from '../sluice.ts'
import type { Moment } from './cursor.ts'
import type { GovernedJob, GovernedRun } from './governed.ts'
import type { Run } from './run.ts'
import type { SlowJob, SlowRun } from './slow.ts'
import { tapeArrivals, tapeOf } from './tapes.ts'
import { type Arrivals, arrivalsOf, type Traffic, TrafficError } from './traffic.ts'

/** One traffic through several limits. */
export interface TrafficJob {
  readonly traffic: Traffic
  readonly limits: readonly LimitData[]
}

export type Job = TrafficJob | SlowJob | GovernedJob

export type RunOf<J extends Job> = J extends TrafficJob ? Run : J extends SlowJob ? SlowRun : GovernedRun

/** `look` is about the traffic that was run last. */
export type Request =
  | { readonly id: number; readonly ask: 'run'; readonly job: Job }
  | { readonly id: number; readonly ask: 'look'; readonly call: number }

export type Answer =
  | { readonly id: number; readonly run: RunOf<Job> }
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
