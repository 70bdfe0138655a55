/**
 * The decisions of one turn of the event loop travel together: one call of the driver for many of them, and one for each group where it has groups.
 * Each is decided by itself and in the order of the calls; only the trip is shared. A decision that is alone does not wait for others.
 *
 * A decision is never sent twice: one that was not answered may have been charged.
 */
import type { Verdict } from '../../algorithms/decide.ts'
import { afterThisTurn } from '../../clock/turn-clock.ts'
import type { Part, Step } from '../step.ts'
import type { Asker, Failures, Group, StoreDriver } from '../store.ts'

/** One decision on its way, and who is told of it. */
class PendingStep {
  readonly step: Step
  readonly group: Group
  readonly weight: number
  readonly asker: Asker

  constructor(step: Step, group: Group, asker: Asker) {
    this.step = step
    this.group = group
    this.weight = weightOf(step)
    this.asker = asker
  }
}

/** The weight of a decision by one small limit. */
export const PLAIN = 3
/** So many numbers of a state weigh as much as a limit. */
const HEAVY_WORDS = 80
/** Of a larger state a decision does not touch all. */
const MOST_WORDS = 1_000

/**
 * The weight of a decision, as measured in Redis: 2 for each key that is read and written, 1 for each limit, 1 for every 80 numbers of its
 * state.
 */
export function weightOf({ parts }: Step): number {
  let weight = 0
  let key: string | undefined
  for (const part of parts) {
    if (part.key !== key) weight += 2
    key = part.key
    weight += 1 + Math.floor(Math.min(part.rule.words, MOST_WORDS) / HEAVY_WORDS)
  }
  return weight
}

export class Batches {
  readonly #driver: StoreDriver
  readonly #maxWeight: number
  /** What leaves at the end of the turn, and what it weighs. */
  #turn: PendingStep[] | undefined = undefined
  #weight = 0
  /** Whether a full batch has left in this turn: what comes next leaves after it. */
  #hasSent = false
  readonly #flushLater = () => {
    if (!this.#hasSent) this.#flush()
  }
  /** A tick asked for by a promise's reaction comes when no reaction is left: all that is to run now has run, and nothing else has happened. */
  readonly #atTheEndOfTheTurn = () => {
    if (process?.nextTick === undefined) this.#flushLater()
    else process.nextTick(this.#flushLater)
  }

  /** `maxBatch`: how many decisions by one small limit fill a batch; 1: each leaves at once and by itself. */
  constructor(driver: StoreDriver, maxBatch: number) {
    this.#driver = driver
    this.#maxWeight = maxBatch * PLAIN
  }

  /** Decides a step, all of whose parts are in that group, and tells the asker, later. */
  run(step: Step, group: Group, asker: Asker): void {
    const pending = new PendingStep(step, group, asker)
    if (this.#maxWeight === PLAIN) {
      this.#send([pending])
      return
    }
    const mayFill = group === undefined && !this.#hasSent
    if (mayFill && this.#turn !== undefined && this.#weight + pending.weight > this.#maxWeight) this.#flushFull()
    if (this.#turn === undefined) {
      this.#turn = [pending]
      void NOW.then(this.#atTheEndOfTheTurn)
    } else this.#turn.push(pending)
    this.#weight += pending.weight
    if (mayFill && this.#weight >= this.#maxWeight) this.#flushFull()
  }

  /**
   * A batch that is full leaves at once, so that the store works while this process does. The rest of the turn waits until it is written: written in one
   * piece with it, the rest would be answered in one piece with it, and store and process would take turns.
   */
  #flushFull(): void {
    if (this.#hasSent) return
    this.#flush()
    this.#hasSent = true
    afterThisTurn(() => {
      this.#hasSent = false
      this.#flush()
    })
  }

  #flush(): void {
    const turn = this.#turn
    // It may have left already, because it was full.
    if (turn === undefined) return
    const isOne = this.#weight <= this.#maxWeight && isOneGroup(turn)
    this.#turn = undefined
    this.#weight = 0
    if (isOne) this.#send(turn)
    else this.#sendAll(batchesOf(turn, this.#maxWeight))
  }

  #sendAll(batches: readonly (readonly PendingStep[])[]): void {
    let sent = 0
    const sendAll = () => {
      while (sent < batches.length) this.#send(batches[sent++] as PendingStep[])
    }
    try {
      if (batches.length > 1) this.#driver.together?.(sendAll)
    } catch {
      // No caller could catch the error, and `together` only saves writes: batches that were not sent are sent one by one.
    }
    sendAll()
  }

  #send(batch: readonly PendingStep[]): void {
    const steps = batch.map(({ step }) => step)
    try {
      this.#driver.apply(steps).then(
        (failures) => {
          for (let k = 0; k < batch.length; k++) tell(batch[k] as PendingStep, (failures as Failures | undefined)?.[k])
        },
        (error) => tellAll(batch, error),
      )
    } catch (error) {
      // A driver may throw where it should reject.
      tellAll(batch, error)
    }
  }
}

function tellAll(batch: readonly PendingStep[], failure: unknown): void {
  for (const pending of batch) tell(pending, failure ?? new Error('the driver rejected with nothing'))
}

/** An asker that throws is alone with it: the others are told all the same. */
function tell({ step, asker }: PendingStep, failure: unknown): void {
  try {
    if (failure === undefined) asker.answered(verdictsOf(step))
    else asker.failed(failure)
  } catch (error) {
    void Promise.reject(error)
  }
}

/** They are in the parts. */
export function verdictsOf({ op, parts }: Step): readonly Verdict[] {
  if (op === 'forget') return []
  return parts.length === 1 ? [(parts[0] as Part).verdict] : parts.map(({ verdict }) => verdict)
}

function isOneGroup(turn: readonly PendingStep[]): boolean {
  const [{ group }] = turn as [PendingStep]
  for (const pending of turn) if (pending.group !== group) return false
  return true
}

/** Those of each group, in their order, no batch heavier than that unless one alone is. */
function batchesOf(steps: readonly PendingStep[], maxWeight: number): PendingStep[][] {
  const batches: PendingStep[][] = []
  const open = new Map<Group, { batch: PendingStep[]; weight: number }>()
  for (const pending of steps) {
    const last = open.get(pending.group)
    if (last !== undefined && last.weight + pending.weight <= maxWeight) {
      last.batch.push(pending)
      last.weight += pending.weight
    } else {
      const batch = [pending]
      batches.push(batch)
      open.set(pending.group, { batch, weight: pending.weight })
    }
  }
  return batches
}

/** Where there are ticks, as in Node. */
const { process } = globalThis as { process?: { nextTick?(fn: () => void): void } }

/** Its reactions are what `queueMicrotask` would run, in half the time. */
const NOW = Promise.resolve()
