/**
 * How Redis decides a batch of steps: by one script call, on the server's clock. See run.lua.
 *
 * A decision is never sent twice unless Redis said that it did not run: one that was not answered may have been charged.
 */
import type { Verdict } from '../../algorithms/decide.ts'
import { systemClock } from '../../clock/clock.ts'
import { SluiceError, warn } from '../../errors.ts'
import { acrossGroups } from '../remote/across-groups.ts'
import { verdictsOf } from '../remote/batches.ts'
import { hasOneKey, type Part, type Scope, type Step } from '../step.ts'
import type { Failures, StoreDriver } from '../store.ts'
import type { RedisSender } from './client.ts'
import { isCrossSlot, isForbidden, isNotRun, isTryAgain, storeError } from './failure.ts'
import { bySlot, type KeyScheme, redisKey, slotOf } from './keys.ts'
import { script } from './script.ts'
import { AddressedStep, addArguments, Reply } from './wire.ts'

/** No name of a limit has such a sign in it. */
const PROBE = ':%probe'
/** How long a probe may go unanswered before a warning says that the connection may be dead. */
const SILENCE_US = 5_000_000
/** So many states in one key are read and written as a whole, whichever of them a decision is about. */
const MOST_LIMITS = 4_000
/** How often a call is sent by the name of the script before it sends the text itself: each time another node of a cluster may have learned it. */
const MOST_ATTEMPTS = 4

/** One step of a script call, and its place in the batch. */
class SentStep extends AddressedStep {
  readonly place: number

  constructor(step: Step, keys: readonly string[], places: readonly number[], place: number) {
    super(step, keys, places)
    this.place = place
  }
}

export class RedisDriver implements StoreDriver {
  readonly shared = true
  readonly #scheme: KeyScheme
  readonly #sender: RedisSender
  /** Whether one script call reaches the keys of one slot only. */
  #isCluster: boolean
  #hasWarned = false
  /** How often the text of the script was sent. */
  #texts = 0

  constructor(scheme: KeyScheme, sender: RedisSender) {
    this.#scheme = scheme
    this.#sender = sender
    this.#isCluster = sender.cluster === true
  }

  open({ limits }: Scope): void {
    if (limits.length <= MOST_LIMITS) return
    throw new SluiceError('CONFIG', `${limits.length} limits are too many for one limiter on Redis: it may have ${MOST_LIMITS}`)
  }

  groupOf({ name }: Scope, { key }: Part): number | undefined {
    return this.#isCluster ? slotOf(redisKey(this.#scheme, name, key)) : undefined
  }

  together(applyAll: () => void): void {
    this.#sender.together?.(applyAll)
  }

  /** The server of a cluster that has a key, if the client says. */
  shardOf({ name }: Scope, { key }: Part): string | undefined {
    return this.#sender.nodeOf?.(slotOf(redisKey(this.#scheme, name, key)))
  }

  apply(steps: readonly Step[]): Promise<Failures> {
    const failures: unknown[] = []
    const calls = this.#callsFor(steps, failures)
    if (calls.length === 1) return this.#run(calls[0] as SentStep[], failures)
    return Promise.all(calls.map((call) => this.#run(call, failures))).then(() => failures)
  }

  /** Writes nothing, but is refused as long as a decision on the keys would be. */
  async probe(step: Step): Promise<void> {
    const { keys } = this.#addressed(step, 0)
    await Promise.all(keys.map((key) => this.#probe(`${key}${PROBE}`)))
  }

  async #probe(key: string): Promise<void> {
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

  /** Nearly always one. A step whose keys cannot be written down fails here, and is not sent. */
  #callsFor(steps: readonly Step[], failures: unknown[]): SentStep[][] {
    const calls: SentStep[][] = []
    let call: SentStep[] = []
    for (let place = 0; place < steps.length; place++) {
      const step = steps[place] as Step
      try {
        const sent = this.#addressed(step, place)
        if (call.length === 0 || !mayFollow((call.at(-1) as SentStep).step, step)) {
          call = []
          calls.push(call)
        }
        call.push(sent)
      } catch (error) {
        failures[place] = error
      }
    }
    return calls
  }

  #addressed(step: Step, place: number): SentStep {
    const { scope, parts } = step
    const [{ key: first }] = parts as [Part]
    // Mostly they are all in one key.
    if (hasOneKey(step)) return new SentStep(step, [redisKey(this.#scheme, scope.name, first)], inFirst(parts.length), place)
    const keyOfEach = parts.map(({ key }) => redisKey(this.#scheme, scope.name, key))
    const keys = [...new Set(keyOfEach)]
    const places = keyOfEach.map((key) => keys.indexOf(key) + 1)
    return new SentStep(step, keys, places, place)
  }

  /** By the name of the script. The first calls wait until that is computed: the text is large, and there may be a call for each slot of a cluster. */
  #run(call: readonly SentStep[], failures: unknown[]): Promise<Failures> {
    const { sha1, named } = script()
    if (sha1 !== undefined) return this.#runByName(sha1, call, failures, 1)
    return named.then(() => {
      const { sha1: computed } = script()
      return computed === undefined ? this.#runText(call, failures) : this.#runByName(computed, call, failures, 1)
    })
  }

  /** A server that does not know the script has not run it. One call sends the text then, and those that failed with it try again by the name. */
  #runByName(sha1: string, call: readonly SentStep[], failures: unknown[], attempt: number): Promise<Failures> {
    const textsBefore = this.#texts
    return this.#send(['EVALSHA', sha1], call).then(
      (values) => readReply(call, values, failures),
      (error) => {
        if (!isNotRun(error)) return this.#failed(call, error, failures)
        if (this.#texts === textsBefore || attempt === MOST_ATTEMPTS) return this.#runText(call, failures)
        return this.#runByName(sha1, call, failures, attempt + 1)
      },
    )
  }

  #runText(call: readonly SentStep[], failures: unknown[]): Promise<Failures> {
    this.#texts += 1
    return this.#send(['EVAL', script().text], call).then(
      (values) => readReply(call, values, failures),
      (error) => this.#failed(call, error, failures),
    )
  }

  #send(args: string[], call: readonly SentStep[]): Promise<unknown> {
    addKeys(args, call)
    addArguments(args, call)
    try {
      return Promise.resolve(this.#sender.send(args, args[FIRST_KEY] as string))
    } catch (error) {
      // A sender of the caller's own may throw where it should reject.
      return Promise.reject(error)
    }
  }

  async #failed(call: readonly SentStep[], error: unknown, failures: unknown[]): Promise<Failures> {
    // A cluster behind one address.
    if (isCrossSlot(error)) this.#isCluster = true
    if (call.length > 1 && (isForbidden(error) || isTryAgain(error) || isCrossSlot(error))) {
      // Nothing was done because of one of the keys: the others need not suffer for it.
      await Promise.all(call.map((sent) => this.#run([sent], failures)))
    } else if (isCrossSlot(error) && slotsOf(call[0] as SentStep).length > 1) {
      await this.#decideBySlot(call[0] as SentStep, failures)
    } else {
      for (const { place } of call) failures[place] = storeError(error)
    }
    return failures
  }

  /** A step on several servers of a cluster that was not known to be one. From now on `groupOf` tells. */
  async #decideBySlot(sent: SentStep, failures: unknown[]): Promise<void> {
    const { parts } = sent.step
    try {
      const verdicts = await acrossGroups(sent.step, slotsOf(sent), (each) => this.#decided(each))
      verdicts.forEach((verdict, k) => {
        Object.assign((parts[k] as Part).verdict, verdict)
      })
    } catch (error) {
      failures[sent.place] = error
    }
  }

  async #decided(step: Step): Promise<readonly Verdict[]> {
    const [failure] = await this.apply([step])
    if (failure !== undefined) throw failure
    return verdictsOf(step)
  }
}

/** A call has one time (only tests give one), and a server that is full refuses its first write or none; to delete is a write that it allows. */
function mayFollow(before: Step, step: Step): boolean {
  return before.nowUs === step.nowUs && (before.op !== 'forget' || step.op === 'forget')
}

const IN_FIRST: readonly number[] = [1]

/** So many parts that are all in the first key. */
function inFirst(parts: number): readonly number[] {
  return parts === 1 ? IN_FIRST : new Array(parts).fill(1)
}

/** For each slot the places of its parts. */
function slotsOf({ step, keys, places }: AddressedStep): number[][] {
  return bySlot([...step.parts.keys()], (part) => keys[(places[part] as number) - 1] as string)
}

/** Where the keys begin in the arguments of a call, behind their number. */
const FIRST_KEY = 3

function addKeys(args: string[], call: readonly AddressedStep[]): void {
  args.push('')
  for (const { keys } of call) for (const key of keys) args.push(key)
  args[FIRST_KEY - 1] = `${args.length - FIRST_KEY}`
}

function readReply(call: readonly SentStep[], values: unknown, failures: unknown[]): Failures {
  let read = 0
  try {
    const reply = new Reply(values)
    for (; read < call.length; read++) {
      const { step, place } = call[read] as SentStep
      const failure = reply.read(step)
      if (failure !== undefined) failures[place] = storeError(new Error(failure))
    }
  } catch (error) {
    for (const { place } of call.slice(read)) failures[place] = storeError(error)
  }
  return failures
}
