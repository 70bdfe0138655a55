/**
 * The decisions of one turn of the event loop travel together: one call of the driver for many of
 * them, and one for each group where it has groups. Each is decided by itself and in the order of
 * the calls; only the trip is shared. A decision that is alone does not wait for others.
 *
 * A decision is never sent twice: one that was not answered may have been charged.
 */
import type { Verdict } from '../../algorithms/decide.ts'
import { afterThisTurn } from '../../clock/turn-clock.ts'
import type { Part, Step } from '../step.ts'
import type { Failures, Group, StoreDriver } from '../store.ts'
import type { DenialCache, Sent } from './denials.ts'

/**
 * What asks for a step: one of the two is called, once. An object, because two functions for every
 * call that is under way take the garbage collector several times as long.
 */
export interface Asker {
  readonly step: Step
  answered(verdicts: readonly Verdict[]): void
  failed(error: unknown): void
}

/** The weight of a decision by one small limit. */
export const PLAIN = 3
/** So many numbers of a state weigh as much as a limit. */
const HEAVY_WORDS = 80
/** Of a larger state a decision in Redis does not touch all. */
const MOST_WORDS = 240

/**
 * The weight of a decision, as measured in Redis: 2 for each key that is read and written, 1 for
 * each limit, 1 for every 80 numbers of its state, of which `mostWords` count at most.
 */
export function weightOf({ parts }: Step, mostWords = MOST_WORDS): number {
  let weight = 0
  let key: string | undefined
  for (const part of parts) {
    if (part.key !== key) weight += 2
    key = part.key
    weight += 1 + Math.floor(Math.min(part.rule.words, mostWords) / HEAVY_WORDS)
  }
  return weight
}

export class Batches {
  readonly #driver: StoreDriver
  readonly #maxWeight: number
  readonly #denials: DenialCache | undefined
  /**
   * What leaves at the end of the turn, the groups of those that have one, each in its place, and
   * what all weigh.
   */
  #turn: Asker[] | undefined = undefined
  #groups: Group[] = []
  #weight = 0
  /** Whether a full batch has left in this turn: what comes next leaves after it. */
  #hasSent = false
  readonly #flushLater = () => {
    if (!this.#hasSent) this.#flush()
  }
  /**
   * A tick asked for by a promise's reaction comes when no reaction is left: all that is to run now
   * has run, and nothing else has happened.
   */
  readonly #atTheEndOfTheTurn = () => {
    if (process?.nextTick === undefined) this.#flushLater()
    else process.nextTick(this.#flushLater)
  }

  /**
   * `maxBatch`: how many decisions by one small limit fill a batch; 1: each leaves at once and by
   * itself. `denials`: is told of all answers.
   */
  constructor(driver: StoreDriver, maxBatch: number, denials?: DenialCache) {
    this.#driver = driver
    this.#maxWeight = maxBatch * PLAIN
    this.#denials = denials
  }

  /** Decides a step, all of whose parts are in that group, and tells the asker, later. */
  run(asker: Asker, group: Group): void {
    if (this.#maxWeight === PLAIN) {
      this.#send([asker])
      return
    }
    const weight = weightOf(asker.step)
    const mayFill = group === undefined && !this.#hasSent
    if (mayFill && this.#turn !== undefined && this.#weight + weight > this.#maxWeight) this.#flushFull()
    this.#add(asker, group)
    this.#weight += weight
    if (mayFill && this.#weight >= this.#maxWeight) this.#flushFull()
  }

  #add(asker: Asker, group: Group): void {
    if (group !== undefined) this.#groups[this.#turn?.length ?? 0] = group
    if (this.#turn === undefined) {
      this.#turn = [asker]
      void NOW.then(this.#atTheEndOfTheTurn)
    } else this.#turn.push(asker)
  }

  /**
   * A batch that is full leaves at once, so that the store works while this process does. The rest
   * of the turn waits until it is written: written in one piece with it, the rest would be answered
   * in one piece with it, and store and process would take turns.
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
    const groups = this.#groups
    const isOne = this.#weight <= this.#maxWeight && (groups.length === 0 || turn.every((_, k) => groups[k] === groups[0]))
    this.#turn = undefined
    this.#weight = 0
    if (groups.length > 0) this.#groups = []
    if (isOne) this.#send(turn)
    else this.#sendAll(batchesOf(turn, groups, this.#maxWeight))
  }

  #sendAll(batches: readonly (readonly Asker[])[]): void {
    let sent = 0
    const sendAll = () => {
      while (sent < batches.length) this.#send(batches[sent++] as Asker[])
    }
    try {
      if (batches.length > 1) this.#driver.together?.(sendAll)
    } catch {
      // No caller could catch the error, and `together` only saves writes: batches that were not
      // sent are sent one by one.
    }
    sendAll()
  }

  #send(askers: readonly Asker[]): void {
    const sent = this.#denials?.sending()
    try {
      this.#driver.apply(askers.map(({ step }) => step)).then(
        (failures) => {
          for (let k = 0; k < askers.length; k++) this.#tell(askers[k] as Asker, (failures as Failures | undefined)?.[k], sent)
        },
        (error) => this.#tellAll(askers, error),
      )
    } catch (error) {
      // A driver may throw where it should reject.
      this.#tellAll(askers, error)
    }
  }

  #tellAll(askers: readonly Asker[], failure: unknown): void {
    for (const asker of askers) this.#tell(asker, failure ?? new Error('the driver rejected with nothing'), undefined)
  }

  /** An asker that throws is alone with it: the others are told all the same. */
  #tell(asker: Asker, failure: unknown, sent: Sent | undefined): void {
    try {
      if (failure === undefined) this.#answer(asker, sent)
      else {
        this.#denials?.failed(asker.step)
        asker.failed(failure)
      }
    } catch (error) {
      void Promise.reject(error)
    }
  }

  #answer(asker: Asker, sent: Sent | undefined): void {
    const verdicts = verdictsOf(asker.step)
    if (sent !== undefined) this.#denials?.answered(asker.step, verdicts, sent)
    asker.answered(verdicts)
  }
}

/** They are in the parts. */
export function verdictsOf({ op, parts }: Step): readonly Verdict[] {
  if (op === 'forget') return []
  return parts.length === 1 ? [(parts[0] as Part).verdict] : parts.map(({ verdict }) => verdict)
}

/** Those of each group, in their order, no batch heavier than that unless one alone is. */
function batchesOf(askers: readonly Asker[], groups: readonly Group[], maxWeight: number): Asker[][] {
  const batches: Asker[][] = []
  const open = new Map<Group, { batch: Asker[]; weight: number }>()
  for (let k = 0; k < askers.length; k++) {
    const asker = askers[k] as Asker
    const weight = weightOf(asker.step)
    const last = open.get(groups[k])
    if (last !== undefined && last.weight + weight <= maxWeight) {
      last.batch.push(asker)
      last.weight += weight
    } else {
      const batch = [asker]
      batches.push(batch)
      open.set(groups[k], { batch, weight })
    }
  }
  return batches
}

/** Where there are ticks, as in Node. */
const { process } = globalThis as { process?: { nextTick?(fn: () => void): void } }

/** Its reactions are what `queueMicrotask` would run, in half the time. */
const NOW = Promise.resolve()
