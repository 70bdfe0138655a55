/**
 * Tapes and stories: decisions written down as data. A tape is one limit and a sequence of calls on
 * one key; a story is a sequence of verbs, also on several limits. Fields of a row are expected
 * exactly; fields that it leaves out are ignored.
 */
import type { Limit } from '../algorithms/algorithm.ts'
import type { Decision } from '../limiter/decision.ts'
import { createLimiter, type Limiter, type Settleable } from '../limiter/limiter.ts'
import type { Limits } from '../limiter/options.ts'
import type { AsyncStore } from '../stores/remote/async-store.ts'
import type { SyncStore } from '../stores/store.ts'
import { type FakeClock, fakeClock } from './fake-clock.ts'

/** A limit as JSON: `{ "type": "gcra", "rate": "1/s", "burst": 5 }`. */
export type LimitData = { readonly type: string } & Readonly<Record<string, unknown>>

/** The figures of a decision that a row may state. */
export interface Expected {
  readonly outcome?: string
  readonly remaining?: number
  readonly retryAfterMs?: number
  readonly resetAfterMs?: number
  readonly delayMs?: number
}

export interface Tape {
  readonly id: string
  readonly source: string
  readonly limit: LimitData
  readonly tape: readonly (Expected & { readonly atMs: number; readonly cost: number; readonly repeat?: number })[]
}

export interface StoryStep extends Expected {
  readonly atMs: number
  readonly consume?: number | Readonly<Record<string, number>>
  readonly peek?: number
  readonly refund?: number
  readonly charge?: number
  /**
   * The real cost of the decision of another step: with `of`, which step that was, counted from 0.
   */
  readonly settle?: number | Readonly<Record<string, number>>
  readonly of?: number
  readonly update?: LimitData
  readonly policy?: string
  readonly parts?: Readonly<Record<string, Expected>>
}

export interface Story {
  readonly id: string
  readonly limit?: LimitData
  readonly limits?: Readonly<Record<string, LimitData>>
  readonly steps: readonly StoryStep[]
}

/** The parts that a run needs: a store, and a function from JSON to a limit. */
export interface Stage {
  readonly store: SyncStore | AsyncStore
  readonly limitFrom: (data: LimitData) => Limit
}

/** Plays a tape and returns where it differed, a line each: nothing when all is as stated. */
export async function playTape(tape: Tape, stage: Stage): Promise<string[]> {
  const clock = fakeClock()
  const limiter = limiterFor(tape.id, stage.limitFrom(tape.limit), stage, clock)
  const differences: string[] = []
  for (const [row, { atMs, cost, repeat = 1, ...expected }] of tape.tape.entries()) {
    clock.setMs(atMs)
    for (let k = 0; k < repeat; k++) {
      differences.push(...compare(`${tape.id} row ${row}`, expected, await limiter.consume('key', cost)))
    }
  }
  return differences
}

/** Plays a story and returns where it differed. */
export async function playStory(story: Story, stage: Stage): Promise<string[]> {
  const clock = fakeClock()
  const limits = story.limits === undefined ? stage.limitFrom(story.limit as LimitData) : mapped(story.limits, stage.limitFrom)
  const limiter = limiterFor(story.id, limits, stage, clock)
  const differences: string[] = []
  const decisions: (Decision & Settleable<string, AsyncStore>)[] = []
  for (const [row, step] of story.steps.entries()) {
    clock.setMs(step.atMs)
    const decision = await perform(step, limiter, stage, decisions)
    decisions.push(decision as Decision & Settleable<string, AsyncStore>)
    if (decision !== undefined) differences.push(...compare(`${story.id} step ${row}`, expectedOf(step), decision))
  }
  return differences
}

function limiterFor<L extends Limits>(id: string, limits: L, { store }: Stage, clock: FakeClock): Limiter<L, AsyncStore> {
  return createLimiter(limits, { name: id, store: store as AsyncStore, clock, maxAheadMs: 0 })
}

async function perform(
  step: StoryStep,
  limiter: Limiter<Limits, AsyncStore>,
  { limitFrom }: Stage,
  decisions: readonly Settleable<string, AsyncStore>[],
): Promise<object | undefined> {
  if (step.update !== undefined) limiter.update(limitFrom(step.update))
  if (step.refund !== undefined) await limiter.refund('key', step.refund)
  if (step.settle !== undefined) await decisions[step.of ?? 0]?.settle(step.settle)
  if (step.charge !== undefined) return limiter.charge('key', step.charge)
  if (step.peek !== undefined) return limiter.peek('key', step.peek)
  if (step.consume !== undefined) return limiter.consume('key', step.consume)
  return undefined
}

/** The expected decision of a step, without the verb. */
function expectedOf({ atMs, consume, peek, refund, charge, settle, of, update, ...expected }: StoryStep): object {
  return expected
}

/** Every field of `expected` against the same field of `actual`, into nested objects. */
function compare(where: string, expected: object, actual: object): string[] {
  return Object.entries(expected).flatMap(([field, value]) => {
    const found = (actual as Record<string, unknown>)[field]
    if (typeof value === 'object' && value !== null) return compare(`${where} ${field}`, value, (found ?? {}) as object)
    return Object.is(found, value) ? [] : [`${where}: ${field} is ${found}, expected ${value}`]
  })
}

function mapped<From, To>(record: Readonly<Record<string, From>>, fn: (value: From) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, fn(value)]))
}
