/**
 * The decisions of one turn of the event loop travel together: one script call for many of them, and in a cluster one for each slot. Each
 * is decided by itself and in the order of the calls; only the trip is shared. A decision that is alone does not wait for others.
 *
 * A decision is never sent twice unless Redis said that it did not run: one that timed out may have been charged.
 */
import type { Verdict } from '../../algorithms/decide.ts'
import type { Step } from '../store.ts'
import type { RedisSender } from './client.ts'
import { isCrossSlot, isForbidden, isNotRun, isTryAgain, storeError } from './failure.ts'
import { bySlot } from './keys.ts'
import { type Script, scriptFor } from './script.ts'
import { addArguments, Reply } from './wire.ts'

/** One decision on its way. */
interface Errand {
  readonly step: Step
  readonly keys: readonly string[]
  resolve(verdicts: Verdict[]): void
  reject(error: unknown): void
  readonly onVerdicts: ((verdicts: readonly Verdict[]) => void) | undefined
}

export class Batches {
  readonly #sender: RedisSender
  readonly #maxBatch: number
  /** Whether keys of different slots must travel apart. */
  #apart: boolean
  #turn: Errand[] = []
  readonly #departing = () => this.#depart()

  constructor(sender: RedisSender, maxBatch: number) {
    this.#sender = sender
    this.#maxBatch = maxBatch
    this.#apart = sender.cluster === true
  }

  /** Whether one script call reaches the keys of one slot only. */
  get isCluster(): boolean {
    return this.#apart
  }

  /** Decides a step, all of whose keys are on one server. `onVerdicts` hears of the verdicts before whoever waits for them. */
  run(step: Step, keys: readonly string[], onVerdicts?: (verdicts: readonly Verdict[]) => void): Promise<Verdict[]> {
    return new Promise((resolve, reject) => {
      if (this.#turn.length === 0) atTheEndOfTheTurn(this.#departing)
      this.#turn.push({ step, keys, resolve, reject, onVerdicts })
      // A call that is full leaves at once, so that Redis works while this process does.
      if (this.#turn.length === this.#maxBatch && !this.#apart) this.#depart()
    })
  }

  /** Writes nothing, but is refused as long as a decision on the key would be. */
  async probe(key: string): Promise<void> {
    try {
      await this.#sender.send(['SET', key, '', 'XX', 'PX', '1'], key)
    } catch (error) {
      throw storeError(error)
    }
  }

  #depart(): void {
    const turn = this.#turn
    // It may have left already, because it was full.
    if (turn.length === 0) return
    this.#turn = []
    this.#sendAll(turn)
  }

  #sendAll(errands: readonly Errand[]): void {
    const groups = this.#apart ? bySlot(errands, ({ keys }) => keys[0] as string) : [errands]
    const batches = groups.flatMap((group) => [...batchesOf(group, this.#maxBatch)])
    let sent = 0
    const sendAll = () => {
      while (sent < batches.length) this.#send(batches[sent++] as Errand[])
    }
    try {
      if (batches.length > 1) this.#sender.together?.(sendAll)
    } finally {
      // Whatever the client makes of it.
      sendAll()
    }
  }

  #send(batch: readonly Errand[]): void {
    this.#evaluate(batch)
      .then((values) => this.#answered(batch, new Reply(values)))
      .catch((error) => this.#failed(batch, error))
  }

  #answered(batch: readonly Errand[], reply: Reply): void {
    for (const errand of batch) settle(errand, reply.read(errand.step))
  }

  #failed(batch: readonly Errand[], error: unknown): void {
    // A cluster behind one address.
    if (isCrossSlot(error)) this.#apart = true
    if (batch.length > 1 && (isForbidden(error) || isTryAgain(error) || isCrossSlot(error))) {
      // Nothing was done because of one of the keys: the others need not suffer for it.
      for (const errand of batch) this.#send([errand])
    } else {
      for (const { reject } of batch) reject(storeError(error))
    }
  }

  #evaluate(batch: readonly Errand[]): Promise<unknown> {
    const script = scriptOf(batch)
    const keys = batch.length === 1 ? (batch[0] as Errand).keys : batch.flatMap((errand) => errand.keys)
    const args = ['EVALSHA', script.sha1 ?? '', `${keys.length}`, ...keys]
    addArguments(args, batch)
    const key = keys[0] as string
    const inFull = () => this.#sent(['EVAL', script.text, ...args.slice(2)], key)
    if (script.sha1 === undefined) return inFull()
    return this.#sent(args, key).catch((error) => {
      if (isNotRun(error)) return inFull()
      throw error
    })
  }

  /** A client may throw where it should reject. */
  #sent(args: readonly string[], key: string): Promise<unknown> {
    try {
      return this.#sender.send(args, key)
    } catch (error) {
      return Promise.reject(error)
    }
  }
}

function settle({ resolve, reject, onVerdicts }: Errand, answer: Verdict[] | string): void {
  if (typeof answer === 'string') {
    reject(storeError(new Error(answer)))
    return
  }
  onVerdicts?.(answer)
  resolve(answer)
}

function scriptOf(batch: readonly Errand[]): Script {
  const types: string[] = []
  for (const { step } of batch) {
    for (const { rule } of step.parts) if (!types.includes(rule.algorithm.type)) types.push(rule.algorithm.type)
  }
  return scriptFor(types)
}

/** No more than so many, and one time for all: only tests give a time. */
function* batchesOf(errands: readonly Errand[], maxBatch: number): Generator<Errand[]> {
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
