/**
 * The decisions of one turn of the event loop travel together: one script call for many of them, and in a cluster one for each slot. Each
 * is decided by itself and in the order of the calls; only the trip is shared. A decision that is alone does not wait for others.
 *
 * A decision is never sent twice unless Redis said that it did not run: one that timed out may have been charged.
 */
import type { Verdict } from '../../algorithms/decide.ts'
import type { Step } from '../store.ts'
import type { RedisSender } from './client.ts'
import { isCrossSlot, isForbidden, isNotRun, storeError } from './failure.ts'
import { slotOf } from './keys.ts'
import { type Script, scriptFor } from './script.ts'
import { argumentsOf, Reply } from './wire.ts'

/** One decision on its way. */
interface Errand {
  readonly step: Step
  readonly keys: readonly string[]
  resolve(verdicts: Verdict[]): void
  reject(error: unknown): void
}

export class Batches {
  readonly #sender: RedisSender
  readonly #maxBatch: number
  /** Whether keys of different slots must travel apart. */
  #apart: boolean
  #turn: Errand[] = []

  constructor(sender: RedisSender, maxBatch: number) {
    this.#sender = sender
    this.#maxBatch = maxBatch
    this.#apart = sender.cluster === true
  }

  /** Whether one script call reaches the keys of one slot only. */
  get isCluster(): boolean {
    return this.#apart
  }

  /** Decides a step, all of whose keys are on one server. */
  run(step: Step, keys: readonly string[]): Promise<Verdict[]> {
    return new Promise((resolve, reject) => {
      if (this.#turn.length === 0) atTheEndOfTheTurn(() => this.#depart())
      this.#turn.push({ step, keys, resolve, reject })
    })
  }

  #depart(): void {
    const turn = this.#turn
    this.#turn = []
    this.#sendAll(turn)
  }

  #sendAll(errands: readonly Errand[]): void {
    for (const group of this.#apart ? bySlot(errands) : [errands]) {
      for (const batch of batchesOf(group, this.#maxBatch)) void this.#send(batch)
    }
  }

  async #send(batch: readonly Errand[]): Promise<void> {
    try {
      const reply = new Reply((await this.#evaluate(batch)) as unknown[])
      for (const errand of batch) settle(errand, reply.read(errand.step))
    } catch (error) {
      this.#failed(batch, error)
    }
  }

  #failed(batch: readonly Errand[], error: unknown): void {
    if (batch.length > 1 && isForbidden(error)) {
      // One of the keys may not be touched, and nothing was: who may, goes alone.
      for (const errand of batch) void this.#send([errand])
    } else if (!this.#apart && isCrossSlot(error)) {
      // A cluster behind one address. Nothing ran.
      this.#apart = true
      this.#sendAll(batch)
    } else {
      for (const { reject } of batch) reject(storeError(error))
    }
  }

  async #evaluate(batch: readonly Errand[]): Promise<unknown> {
    const keys = batch.length === 1 ? (batch[0] as Errand).keys : batch.flatMap((errand) => errand.keys)
    const rest = [`${keys.length}`, ...keys, ...argumentsOf(batch.map(({ step }) => step))]
    const script = scriptOf(batch)
    const key = keys[0] as string
    if (script.sha1 !== undefined) {
      try {
        return await this.#sender.send(['EVALSHA', script.sha1, ...rest], key)
      } catch (error) {
        if (!isNotRun(error)) throw error
      }
    }
    return await this.#sender.send(['EVAL', script.text, ...rest], key)
  }
}

function settle({ resolve, reject }: Errand, answer: Verdict[] | string): void {
  if (typeof answer === 'string') reject(storeError(new Error(answer)))
  else resolve(answer)
}

function scriptOf(batch: readonly Errand[]): Script {
  const types: string[] = []
  for (const { step } of batch) {
    for (const { rule } of step.parts) if (!types.includes(rule.algorithm.type)) types.push(rule.algorithm.type)
  }
  return scriptFor(types)
}

/** Together where all keys have the same slot, each in its order. */
function bySlot(errands: readonly Errand[]): Iterable<Errand[]> {
  const groups = new Map<number, Errand[]>()
  for (const errand of errands) {
    const slot = slotOf(errand.keys[0] as string)
    const group = groups.get(slot)
    if (group === undefined) groups.set(slot, [errand])
    else group.push(errand)
  }
  return groups.values()
}

/** No more than so many, and one time for all: only tests give a time. */
function* batchesOf(errands: readonly Errand[], maxBatch: number): Generator<readonly Errand[]> {
  let batch: Errand[] = []
  for (const errand of errands) {
    if (batch.length === maxBatch || (batch.length > 0 && batch[0]?.step.nowUs !== errand.step.nowUs)) {
      yield batch
      batch = []
    }
    batch.push(errand)
  }
  yield batch
}

interface NodeProcess {
  nextTick?(fn: () => void): void
}

/** After everything that is to run now has run, promises included, and before anything else happens. */
function atTheEndOfTheTurn(fn: () => void): void {
  const { process } = globalThis as { process?: NodeProcess }
  // A tick asked for by a promise's reaction comes when no reaction is left.
  queueMicrotask(() => (process?.nextTick === undefined ? fn() : process.nextTick(fn)))
}
