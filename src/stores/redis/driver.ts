/**
 * How Redis decides a batch of steps: by one script call, on the server's clock. See run.lua.
 *
 * A decision is never sent twice unless Redis said that it did not run: one that was not answered
 * may have been charged.
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
import { bySlot, type KeyScheme, keyBehind, keyHead, slotOf } from './keys.ts'
import { script } from './script.ts'
import { addArguments, type Keys, Reply, ScriptCall } from './wire.ts'

/** No name of a limit has such a sign in it. */
const PROBE = ':%probe'
/** How long a probe may go unanswered before a warning says that the connection may be dead. */
const SILENCE_US = 5_000_000
/**
 * A probe that is not answered for so long is lost: its client will never answer it. Longer than
 * any time after which a client takes a silent connection for dead.
 */
const LOST_US = 10_000_000
/**
 * So many states in one key are read and written as a whole, whichever of them a decision is about.
 */
const MOST_LIMITS = 4_000
/**
 * How often a call is sent by the name of the script before it sends the text itself: each time
 * another node of a cluster may have learned it.
 */
const MOST_ATTEMPTS = 4

export class RedisDriver implements StoreDriver {
  readonly shared = true
  readonly #scheme: KeyScheme
  readonly #sender: RedisSender
  /** Whether one script call reaches the keys of one slot only. */
  #isCluster: boolean
  #hasWarned = false
  /** The limiter whose keys were written down last, and their beginning. */
  #limiter: string | undefined = undefined
  #head = ''
  /** How often the text of the script was sent. */
  #texts = 0
  /** Since when a server owes the answer to a probe, by the server. */
  readonly #probedUs = new Map<string | undefined, number>()

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
    return this.#isCluster ? slotOf(this.#redisKey(name, key)) : undefined
  }

  together(applyAll: () => void): void {
    this.#sender.together?.(applyAll)
  }

  /** The server of a cluster that has a key, if the client says. */
  shardOf({ name }: Scope, { key }: Part): string | undefined {
    return this.#serverOf(this.#redisKey(name, key))
  }

  apply(steps: readonly Step[]): Promise<Failures> {
    const failures: unknown[] = []
    const calls = this.#callsFor(steps, failures)
    if (calls.length === 1) return this.#run(calls[0] as ScriptCall, failures)
    return Promise.all(calls.map((call) => this.#run(call, failures))).then(() => failures)
  }

  /**
   * Writes nothing, but is refused as long as a decision on the keys would be. Nothing is sent to a
   * server that owes the answer to a probe: a client that takes a silent connection for dead may
   * count the silence anew from each write.
   */
  async probe(step: Step): Promise<void> {
    const { keys } = new ScriptCall(step, 0, this.#keysOf(step))
    const probes = keys.map((key) => ({ key, server: this.#serverOf(key) }))
    const nowUs = systemClock.nowUs()
    if (probes.some(({ server }) => nowUs - (this.#probedUs.get(server) ?? 0) < LOST_US)) {
      throw new SluiceError('STORE', 'Redis: the last probe is not answered')
    }
    await Promise.all(probes.map(({ key, server }) => this.#probe(key, server)))
  }

  /** Undefined: it is not known, or there is one. */
  #serverOf(key: string): string | undefined {
    try {
      return this.#sender.nodeOf?.(slotOf(key))
    } catch {
      return undefined
    }
  }

  async #probe(key: string, server: string | undefined): Promise<void> {
    const sentUs = systemClock.nowUs()
    this.#probedUs.set(server, sentUs)
    const stopWarning = systemClock.setTimer(() => this.#warnOfSilence(key), SILENCE_US, false)
    try {
      await this.#sender.send(['SET', `${key}${PROBE}`, '', 'XX', 'PX', '1'], key)
    } catch (error) {
      throw storeError(error)
    } finally {
      stopWarning()
      if (this.#probedUs.get(server) === sentUs) this.#probedUs.delete(server)
    }
  }

  /**
   * A server that stands still looks the same from here: that the client should not wait for ever
   * is true of both.
   */
  #warnOfSilence(key: string): void {
    const advice = this.#sender.advice?.(slotOf(key))
    if (advice === undefined || this.#hasWarned) return
    this.#hasWarned = true
    warn(
      'SLUICE_HALF_OPEN',
      `Redis has not answered for ${SILENCE_US / 1_000_000} s on a connection that looks open. If Redis is well, the connection is dead, and this client will not notice: make it with ${advice}`,
    )
  }

  /** Nearly always one. A step whose keys cannot be written down fails here, and is not sent. */
  #callsFor(steps: readonly Step[], failures: unknown[]): ScriptCall[] {
    const calls: ScriptCall[] = []
    let call: ScriptCall | undefined
    for (let place = 0; place < steps.length; place++) {
      const step = steps[place] as Step
      try {
        const keys = this.#keysOf(step)
        if (call !== undefined && mayFollow(call.steps.at(-1) as Step, step)) call.add(step, place, keys)
        else {
          call = new ScriptCall(step, place, keys)
          calls.push(call)
        }
      } catch (error) {
        failures[place] = error
      }
    }
    return calls
  }

  #redisKey(limiter: string, key: string): string {
    if (limiter !== this.#limiter) {
      this.#limiter = limiter
      this.#head = keyHead(this.#scheme, limiter)
    }
    return keyBehind(this.#head, this.#scheme, key)
  }

  /** Mostly all parts have the same. */
  #keysOf(step: Step): Keys {
    const { scope, parts } = step
    if (hasOneKey(step)) return this.#redisKey(scope.name, (parts[0] as Part).key)
    return parts.map(({ key }) => this.#redisKey(scope.name, key))
  }

  /**
   * By the name of the script. The first calls wait until that is computed: the text is large, and
   * there may be a call for each slot of a cluster.
   */
  #run(call: ScriptCall, failures: unknown[]): Promise<Failures> {
    const { sha1, named } = script()
    if (sha1 !== undefined) return this.#runByName(sha1, call, failures, 1)
    return named.then(() => {
      const { sha1: computed } = script()
      return computed === undefined ? this.#runText(call, failures) : this.#runByName(computed, call, failures, 1)
    })
  }

  /**
   * A server that does not know the script has not run it. One call sends the text then, and those
   * that failed with it try again by the name.
   */
  #runByName(sha1: string, call: ScriptCall, failures: unknown[], attempt: number): Promise<Failures> {
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

  #runText(call: ScriptCall, failures: unknown[]): Promise<Failures> {
    this.#texts += 1
    return this.#send(['EVAL', script().text], call).then(
      (values) => readReply(call, values, failures),
      (error) => this.#failed(call, error, failures),
    )
  }

  /** `name`: the command, and the script or its name. */
  #send(name: readonly string[], call: ScriptCall): Promise<unknown> {
    const args = [...name, `${call.keys.length}`, ...call.keys]
    addArguments(args, call)
    try {
      return Promise.resolve(this.#sender.send(args, call.keys[0] as string))
    } catch (error) {
      // A sender of the caller's own may throw where it should reject.
      return Promise.reject(error)
    }
  }

  async #failed(call: ScriptCall, error: unknown, failures: unknown[]): Promise<Failures> {
    const { steps, places } = call
    // A cluster behind one address.
    if (isCrossSlot(error)) this.#isCluster = true
    if (steps.length > 1 && (isForbidden(error) || isTryAgain(error) || isCrossSlot(error))) {
      // Nothing was done because of one of the keys: the others need not suffer for it.
      await Promise.all(steps.map((step, k) => this.#run(new ScriptCall(step, places[k] as number, this.#keysOf(step)), failures)))
    } else if (isCrossSlot(error) && this.#slotsOf(steps[0] as Step).length > 1) {
      await this.#decideBySlot(steps[0] as Step, places[0] as number, failures)
    } else {
      for (const place of places) failures[place] = storeError(error)
    }
    return failures
  }

  /**
   * A step on several servers of a cluster that was not known to be one. From now on `groupOf`
   * tells.
   */
  async #decideBySlot(step: Step, place: number, failures: unknown[]): Promise<void> {
    const { parts } = step
    try {
      const verdicts = await acrossGroups(step, this.#slotsOf(step), (each) => this.#decided(each))
      verdicts.forEach((verdict, k) => {
        Object.assign((parts[k] as Part).verdict, verdict)
      })
    } catch (error) {
      failures[place] = error
    }
  }

  /** For each slot the places of its parts. */
  #slotsOf({ scope, parts }: Step): number[][] {
    return bySlot([...parts.keys()], (k) => this.#redisKey(scope.name, (parts[k] as Part).key))
  }

  async #decided(step: Step): Promise<readonly Verdict[]> {
    const [failure] = await this.apply([step])
    if (failure !== undefined) throw failure
    return verdictsOf(step)
  }
}

/**
 * A call has one time (only tests give one), and a server that is full refuses its first write or
 * none; to delete is a write that it allows.
 */
function mayFollow(before: Step, step: Step): boolean {
  return before.nowUs === step.nowUs && (before.op !== 'forget' || step.op === 'forget')
}

function readReply({ steps, places }: ScriptCall, values: unknown, failures: unknown[]): Failures {
  let read = 0
  try {
    const reply = new Reply(values)
    for (; read < steps.length; read++) {
      const failure = reply.read(steps[read] as Step)
      if (failure !== undefined) failures[places[read] as number] = storeError(new Error(failure))
    }
  } catch (error) {
    for (const place of places.slice(read)) failures[place] = storeError(error)
  }
  return failures
}
