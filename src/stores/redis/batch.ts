/**
 * The decisions of one turn of the event loop travel together: one script call for many of them, and in a cluster one for each slot. Each
 * is decided by itself and in the order of the calls; only the trip is shared. A decision that is alone does not wait for others.
 *
 * A decision is never sent twice unless Redis said that it did not run: one that timed out may have been charged.
 */
import type { Verdict } from '../../algorithms/decide.ts'
import { systemClock } from '../../clock/clock.ts'
import { type SluiceError, warn } from '../../errors.ts'
import type { OnFailure, OnVerdicts } from '../store.ts'
import type { RedisSender } from './client.ts'
import { isCrossSlot, isForbidden, isNotRun, isTryAgain, storeError } from './failure.ts'
import { bySlot, slotOf } from './keys.ts'
import { type Script, scriptFor } from './script.ts'
import { addArguments, Reply, Sent } from './wire.ts'

/** One decision on its way, and who is told of it. */
class PendingStep extends Sent {
  readonly onVerdicts: OnVerdicts
  readonly onFailure: OnFailure

  constructor({ step, keys, places }: Sent, onVerdicts: OnVerdicts, onFailure: OnFailure) {
    super(step, keys, places)
    this.onVerdicts = onVerdicts
    this.onFailure = onFailure
  }
}

/** How long a probe may go unanswered before a warning says that the connection may be dead. */
const SILENCE_US = 5_000_000

export class Batches {
  readonly #sender: RedisSender
  readonly #maxBatch: number
  /** Whether keys of different slots must travel apart. */
  #apart: boolean
  /** What leaves at the end of the turn. */
  #turn: PendingStep[] | undefined = undefined
  /** Whether a full call is with the client, which has yet to write it: what comes next leaves after that. */
  #isWriting = false
  readonly #flushLater = () => {
    if (!this.#isWriting) this.#flush()
  }
  #hasWarned = false
  /** A tick asked for by a promise's reaction comes when no reaction is left: all that is to run now has run, and nothing else has happened. */
  readonly #atTheEndOfTheTurn = () => {
    if (process?.nextTick === undefined) this.#flushLater()
    else process.nextTick(this.#flushLater)
  }

  constructor(sender: RedisSender, maxBatch: number) {
    this.#sender = sender
    this.#maxBatch = maxBatch
    this.#apart = sender.cluster === true
  }

  /** Whether one script call reaches the keys of one slot only. */
  get isCluster(): boolean {
    return this.#apart
  }

  /** Decides a step, all of whose keys are on one server, and calls one of the two, later. */
  run(sent: Sent, onVerdicts: OnVerdicts, onFailure: OnFailure): void {
    const pending = new PendingStep(sent, onVerdicts, onFailure)
    if (this.#turn === undefined) {
      this.#turn = [pending]
      void NOW.then(this.#atTheEndOfTheTurn)
    } else this.#turn.push(pending)
    if (this.#turn.length === this.#maxBatch && !this.#apart && !this.#isWriting) this.#flushFull()
  }

  /** The server of a cluster that has a key, if the client says. */
  nodeOf(key: string): string | undefined {
    return this.#sender.nodeOf?.(slotOf(key))
  }

  /** Writes nothing, but is refused as long as a decision on the key would be. */
  async probe(key: string): Promise<void> {
    const stopWarning = systemClock.setTimer(() => this.#warnOfSilence(), SILENCE_US, false)
    try {
      await this.#sender.send(['SET', key, '', 'XX', 'PX', '1'], key)
    } catch (error) {
      throw storeError(error)
    } finally {
      stopWarning()
    }
  }

  /** A server that stands still looks the same from here: that the client should not wait for ever is true of both. */
  #warnOfSilence(): void {
    const advice = this.#sender.advice?.()
    if (advice === undefined || this.#hasWarned) return
    this.#hasWarned = true
    warn(
      'SLUICE_HALF_OPEN',
      `Redis has not answered for ${SILENCE_US / 1_000_000} s on a connection that looks open. If Redis is well, the connection is dead, and this client will not notice: make it with ${advice}`,
    )
  }

  /** A call that is full leaves at once, so that Redis works while this process does. */
  #flushFull(): void {
    this.#flush()
    if (this.#sender.writesLater !== true) return
    // Written in one piece with it, the rest would be answered in one piece with it, and Redis and this process would take turns.
    this.#isWriting = true
    setImmediate(() => {
      this.#isWriting = false
      this.#flush()
    })
  }

  #flush(): void {
    const turn = this.#turn
    // It may have left already, because it was full.
    if (turn === undefined) return
    this.#turn = undefined
    if (turn.length === 1) this.#send(turn)
    else this.#sendAll(turn)
  }

  #sendAll(steps: readonly PendingStep[]): void {
    const groups = this.#apart ? bySlot(steps, ({ keys }) => keys[0] as string) : [steps]
    const batches = groups.flatMap((group) => [...batchesOf(group, this.#maxBatch)])
    let sent = 0
    const sendAll = () => {
      while (sent < batches.length) this.#send(batches[sent++] as PendingStep[])
    }
    try {
      if (batches.length > 1) this.#sender.together?.(sendAll)
    } catch {
      // Nobody is there to catch it, and it only saves writes: what was not sent is sent one by one.
    }
    sendAll()
  }

  /** By the name of the script if it has one, unless the server said that it does not know it. */
  #send(batch: readonly PendingStep[], isUnknown = false): void {
    const { sha1, text } = scriptOf(batch)
    const byName = sha1 !== undefined && !isUnknown
    const args = byName ? ['EVALSHA', sha1] : ['EVAL', text]
    addKeys(args, batch)
    addArguments(args, batch)
    this.#sent(args).then(
      (values) => this.#answered(batch, values),
      (error) => (byName && isNotRun(error) ? this.#send(batch, true) : this.#failed(batch, error)),
    )
  }

  #answered(batch: readonly PendingStep[], values: unknown): void {
    let told = 0
    try {
      const reply = new Reply(values)
      for (; told < batch.length; told++) {
        const pending = batch[told] as PendingStep
        tell(pending, reply.read(pending.step))
      }
    } catch (error) {
      const failure = storeError(error)
      for (const pending of batch.slice(told)) tell(pending, failure)
    }
  }

  #failed(batch: readonly PendingStep[], error: unknown): void {
    // A cluster behind one address.
    if (isCrossSlot(error)) this.#apart = true
    if (batch.length > 1 && (isForbidden(error) || isTryAgain(error) || isCrossSlot(error))) {
      // Nothing was done because of one of the keys: the others need not suffer for it.
      for (const pending of batch) this.#send([pending])
    } else {
      for (const pending of batch) tell(pending, storeError(error))
    }
  }

  /** A client may throw where it should reject. */
  #sent(args: readonly string[]): Promise<unknown> {
    try {
      return this.#sender.send(args, args[FIRST_KEY] as string)
    } catch (error) {
      return Promise.reject(error)
    }
  }
}

/** The verdicts, the text of the script's error, or a failure of all. Whoever throws when told is alone with it: the others are told all the same. */
function tell({ onVerdicts, onFailure }: PendingStep, answer: readonly Verdict[] | string | SluiceError): void {
  try {
    if (Array.isArray(answer)) onVerdicts(answer)
    else onFailure(typeof answer === 'string' ? storeError(new Error(answer)) : answer)
  } catch (error) {
    void Promise.reject(error)
  }
}

/** Where the keys begin in the arguments of a call, behind their number. */
const FIRST_KEY = 3

function addKeys(args: string[], batch: readonly PendingStep[]): void {
  args.push('')
  for (const { keys } of batch) for (const key of keys) args.push(key)
  args[FIRST_KEY - 1] = `${args.length - FIRST_KEY}`
}

function scriptOf(batch: readonly PendingStep[]): Script {
  const types: string[] = []
  for (const { step } of batch) {
    for (const { rule } of step.parts) if (!types.includes(rule.algorithm.type)) types.push(rule.algorithm.type)
  }
  return scriptFor(types)
}

/** No more than so many, one time for all (only tests give a time), and nothing behind what forgets. */
function* batchesOf(steps: readonly PendingStep[], maxBatch: number): Generator<PendingStep[]> {
  let batch: PendingStep[] = []
  for (const pending of steps) {
    if (batch.length === maxBatch || (batch.length > 0 && !mayFollow(batch.at(-1) as PendingStep, pending))) {
      yield batch
      batch = []
    }
    batch.push(pending)
  }
  yield batch
}

/** A server that is full refuses the first write of a script or none, and deleting is a write that it allows: what came behind would be let in. */
function mayFollow({ step: before }: PendingStep, { step }: PendingStep): boolean {
  return before.nowUs === step.nowUs && (before.op !== 'forget' || step.op === 'forget')
}

/** Where clients write later, there is one; Sluice does not want the types of Node for it. */
declare function setImmediate(fn: () => void): void

/** Where there are ticks, as in Node. */
const { process } = globalThis as { process?: { nextTick?(fn: () => void): void } }

/** Its reactions are what `queueMicrotask` would run, in half the time. */
const NOW = Promise.resolve()
