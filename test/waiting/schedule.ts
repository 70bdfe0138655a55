/**
 * Random schedules: what happens to one key, made up by fast-check, on a limiter and on the model
 * side by side. After every step who has ended, how and when, who waits, the state of the store and
 * the number of timers must be those of the model, exactly.
 */
import fc from 'fast-check'
import { type Limit, RULE, type Rule } from '../../src/algorithms/algorithm.ts'
import { createLimiter, type Limiter, memoryStore, WaitError } from '../../src/index.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'
import type { Coverage } from '../model/against-oracle.ts'
import type { End, Ended, Model } from './model.ts'
import { told } from './support.ts'

const KINDS_OF_STEP = {
  acquire: 40,
  'acquire in time': 14,
  consume: 5,
  abort: 12,
  'abort some': 4,
  refund: 9,
  reset: 3,
  update: 5,
  'to the next': 16,
  'just before the next': 8,
  wait: 6,
  'wait long': 1,
  close: 1,
} as const

type StepKind = keyof typeof KINDS_OF_STEP

/** What a step does depends on who waits then: `a` and `b` choose among what there is. */
export interface ScheduleStep {
  readonly kind: StepKind
  readonly a: number
  readonly b: number
}

export interface Schedule<Numbers> {
  /** Numbers to update to; the first are in force at first. */
  readonly palette: readonly Numbers[]
  readonly maxAheadUs: number
  readonly maxQueue: number
  readonly steps: readonly ScheduleStep[]
}

const stepKind = fc.oneof(...Object.entries(KINDS_OF_STEP).map(([kind, weight]) => ({ weight, arbitrary: fc.constant(kind as StepKind) })))
const choice = fc.integer({ min: 0, max: 999_983 })

/**
 * `windowUs`: how long some numbers make a full charge felt. How far may be booked ahead is chosen
 * by it.
 */
export function schedules<Numbers>(
  numbers: fc.Arbitrary<Numbers>,
  windowUs: (numbers: Numbers) => number,
): fc.Arbitrary<Schedule<Numbers>> {
  return fc
    .record({
      palette: fc.array(numbers, { minLength: 3, maxLength: 3 }),
      ahead: fc.oneof({ weight: 3, arbitrary: fc.constantFrom(0, 0.3, 0.5, 1, 1, 2) }, { weight: 1, arbitrary: fc.constant(100) }),
      maxQueue: fc.oneof(
        { weight: 3, arbitrary: fc.constant(Number.POSITIVE_INFINITY) },
        { weight: 2, arbitrary: fc.integer({ min: 1, max: 6 }) },
      ),
      steps: fc.array(fc.record({ kind: stepKind, a: choice, b: choice }), { minLength: 10, maxLength: 70, size: 'max' }),
    })
    .map(({ ahead, ...rest }) => {
      const maxAheadUs = Math.floor(ahead * windowUs(rest.palette[0] as Numbers))
      return { ...rest, maxAheadUs: Math.min(maxAheadUs, 366 * 86_400_000_000) }
    })
}

/** A wait as its caller sees it. */
interface Call {
  readonly id: number
  readonly sinceUs: number
  readonly signal: AbortController
  how: End | undefined
  /** When it was served. */
  servedUs: number | undefined
}

export class Run {
  readonly #steps: readonly ScheduleStep[]
  /** What can be updated to, by the index that the model knows. */
  readonly #palette: readonly Readonly<Record<string, Limit>>[]
  readonly #names: readonly string[]
  readonly #coverage: Coverage
  readonly #clock: FakeClock = fakeClock()
  readonly #store = memoryStore()
  readonly #limiter: Limiter<Record<string, Limit>>
  readonly #model: Model
  /** Those in force. */
  #rules: readonly Rule[]
  readonly #calls: Call[] = []
  /** Those that have ended, in the order in which their callers were told. */
  readonly #ended: Call[] = []
  #toldOf = 0
  #closed = false

  constructor(schedule: Schedule<unknown>, palette: readonly Record<string, Limit>[], model: Model, coverage: Coverage) {
    const { maxAheadUs, maxQueue, steps } = schedule
    const [limits] = palette as [Record<string, Limit>]
    this.#steps = steps
    this.#palette = palette
    this.#names = Object.keys(limits)
    this.#coverage = coverage
    this.#rules = rulesOf(limits)
    const options = { name: 'model', store: this.#store, clock: this.#clock, maxAheadMs: maxAheadUs / 1000, maxQueue }
    this.#limiter = createLimiter<Record<string, Limit>>(limits, options)
    this.#model = model
  }

  get #size(): number {
    return this.#model.booked.length + this.#model.outside.length
  }

  async check(): Promise<void> {
    for (const step of this.#steps) {
      if (this.#closed) return
      this.#coverage.steps += 1
      this.#do(step)
      await told()
      this.#compare()
    }
    this.#waitTo(Number.MAX_SAFE_INTEGER)
    await told()
    this.#compare()
  }

  #do({ kind, a, b }: ScheduleStep): void {
    const size = this.#size
    const before = this.#model.ended.length
    switch (kind) {
      case 'acquire':
      case 'acquire in time':
        this.#enter(a, b, kind === 'acquire in time')
        break
      case 'consume':
        this.#consume(a)
        break
      case 'abort':
        this.#abort([a])
        break
      case 'abort some':
        this.#abort([a, a + 1, b])
        break
      case 'refund':
        this.#refund(a)
        break
      case 'reset':
        this.#limiter.reset('k')
        this.#model.reset()
        break
      case 'update':
        this.#update(a)
        break
      case 'close':
        this.#limiter.close()
        this.#model.close()
        this.#closed = true
        break
      default:
        if (size === 0 && kind !== 'wait long') this.#fill()
        else this.#waitTo(this.#momentUs(kind, a))
    }
    if (size > 0 && (kind === 'refund' || kind === 'reset' || kind === 'update' || kind === 'close'))
      this.#coverage.add(`${kind} with waiters`)
    for (const end of this.#model.ended.slice(before)) this.#count(end)
  }

  #count({ how, from }: Ended): void {
    this.#coverage.add(from === 'entering' && how !== 'served' ? `${how} at once` : `${how} from ${from}`)
  }

  #enter(a: number, b: number, inTime: boolean): void {
    const costs = this.#someCosts(a)
    const timeoutUs = this.#someTimeoutUs(costs, b, inTime)
    const sinceUs = this.#model.nowUs
    const signal = this.#someSignal(a)
    const call: Call = { id: this.#calls.length, sinceUs, signal, how: undefined, servedUs: undefined }
    this.#calls.push(call)
    const options = { signal: call.signal.signal, ...(timeoutUs === Number.POSITIVE_INFINITY ? {} : { timeoutMs: timeoutUs / 1000 }) }
    this.#watch(call, this.#limiter.acquire('k', { cost: this.#named(costs), ...options }))
    this.#model.enter({ id: call.id, costs, deadlineUs: sinceUs + timeoutUs })
    for (const [where, waiters] of [
      ['booked at once', this.#model.booked],
      ['outside at first', this.#model.outside],
    ] as const) {
      if (waiters.some(({ id }) => id === call.id)) this.#coverage.add(where)
    }
  }

  #watch(call: Call, wait: ReturnType<Limiter['acquire']>): void {
    wait.then(
      ({ waitedMs }) => this.#end(call, 'served', call.sinceUs + Math.round(waitedMs * 1000)),
      (error) => this.#end(call, this.#howOf(call, error)),
    )
  }

  #howOf({ signal }: Call, error: unknown): End {
    if (signal.signal.aborted && error === signal.signal.reason) return 'aborted'
    if (error instanceof WaitError) same(error.decision !== undefined, true, `the decision of ${error.code}`)
    return (error as { code: End }).code
  }

  #end(call: Call, how: End, servedUs?: number): void {
    same(call.how, undefined, `how wait ${call.id} had ended before`)
    Object.assign(call, { how, servedUs })
    this.#ended.push(call)
  }

  #consume(a: number): void {
    const costs = this.#someCosts(a)
    // Water may be poured into a leaky bucket behind those who wait: then there is a hole if one of
    // them leaves, which the model does not know.
    if (this.#size > 0 && this.#rules.some(({ algorithm }) => algorithm.type === 'leakyBucket')) return
    same(this.#limiter.consume('k', this.#named(costs)).allowed, this.#model.consume(costs), 'consume')
  }

  /** Uses up what there is, so that the next have to wait. */
  #fill(): void {
    const { parts } = this.#limiter.peek('k', 0)
    const all = this.#names.map((name) => parts[name]?.remaining ?? 0)
    this.#model.waitUs(all)
    same(this.#limiter.consume('k', this.#named(all)).allowed, this.#model.consume(all), 'consume')
  }

  #abort(choices: readonly number[]): void {
    const waiting = [...this.#model.booked, ...this.#model.outside].map(({ id }) => id)
    const ids = [...new Set(choices.map((each) => waiting[each % waiting.length]))].filter((id) => id !== undefined)
    for (const id of ids) {
      const { signal } = this.#calls[id] as Call
      const together = waiting.filter(
        (other) => this.#calls[other]?.signal === signal && this.#model.ended.every((end) => end.id !== other),
      )
      signal.abort(new Error('gone'))
      if (together.length > 1) this.#coverage.add('several leave at once')
      if (together.length > 0) this.#model.leave(together)
    }
  }

  /** One in four waits on the signal of the one before it. */
  #someSignal(a: number): AbortController {
    const last = this.#calls.at(-1)?.signal
    return a % 4 === 0 && last !== undefined && !last.signal.aborted ? last : new AbortController()
  }

  #refund(a: number): void {
    const costs = this.#someCosts(a)
    this.#limiter.refund('k', this.#named(costs))
    this.#model.refund(costs)
  }

  #update(a: number): void {
    const index = a % this.#palette.length
    const limits = this.#palette[index] as Record<string, Limit>
    this.#rules = rulesOf(limits)
    this.#limiter.update(limits)
    this.#model.update(index)
  }

  /** Mostly the present capacity bounds it; one in thirty is nothing, one in thirty too much. */
  #someCosts(a: number): number[] {
    const nothing = a % 31 === 0
    return this.#rules.map(({ capacity }, k) => {
      if (nothing) return 0
      return a % 29 === 0 && k === 0 ? capacity + 1 : 1 + ((a >> (2 * k)) % Math.min(capacity, a % 3 === 0 ? capacity : 5))
    })
  }

  #named(costs: readonly number[]): Record<string, number> {
    return Object.fromEntries(costs.map((cost, k) => [this.#names[k], cost]))
  }

  /** Often what is needed exactly, or a microsecond less. */
  #someTimeoutUs(costs: readonly number[], b: number, always: boolean): number {
    const chosen = b % 8
    if (chosen < 4 && !always) return Number.POSITIVE_INFINITY
    const neededUs = this.#model.waitUs(costs)
    const needed = Number.isFinite(neededUs) ? neededUs : 10
    if (chosen === 4) return Math.max(0, needed - 1)
    if (chosen === 5) return needed
    return needed + (b % Math.max(10, 4 * needed))
  }

  #momentUs(kind: StepKind, a: number): number {
    const { nowUs } = this.#model
    const nextUs = this.#model.nextUs()
    const [rule] = this.#rules as [Rule]
    if (kind === 'wait long') return nowUs + (a % (20 * rule.windowUs))
    if (kind === 'wait') return nowUs + (a % (2 + Math.ceil((2 * rule.windowUs) / rule.capacity)))
    return Math.max(nowUs, kind === 'to the next' ? nextUs : nextUs - 1)
  }

  #waitTo(us: number): void {
    this.#clock.setUs(us)
    this.#model.advanceTo(us)
  }

  #compare(): void {
    const { ended, booked, outside } = this.#model
    for (const { id, how, atUs } of ended.slice(this.#toldOf)) {
      const call = this.#calls[id] as Call
      same(call.how, how, `how wait ${id} ended`)
      if (call.servedUs !== undefined) same(call.servedUs, atUs, `the time of wait ${id}`)
    }
    same(this.#ended.length, ended.length, 'how many waits ended')
    this.#compareOrder()
    this.#toldOf = ended.length
    same(this.#limiter.waiting('k'), booked.length + outside.length, 'how many wait')
    same(this.#limiter.waiting(), booked.length + outside.length, 'how many wait in all')
    same(this.#clock.timers, booked.length + outside.length > 0 ? 1 : 0, 'how many timers there are')
    if (booked.length > 1) this.#coverage.add('several are booked')
    if (booked.length > 0 && outside.length > 0) this.#coverage.add('some booked, some outside')
    this.#rules.forEach((_, k) => {
      this.#compareState(k)
    })
  }

  /** Callers are told in the order of the model. */
  #compareOrder(): void {
    const served = ({ how }: Call) => how === 'served'
    const told = this.#ended.slice(this.#toldOf).filter(served)
    const meant = this.#model.ended.slice(this.#toldOf).map(({ id }) => this.#calls[id] as Call)
    same(idsOf(told), idsOf(meant.filter(served)), 'the order')
  }

  #compareState(k: number): void {
    const name = this.#names[k] as string
    const [seen, meant] = this.#model.states(k, this.#store.inspect('model', name, 'k'))
    same(seen, meant, `what the store holds of limit ${name}`)
  }
}

function rulesOf(limits: Readonly<Record<string, Limit>>): Rule[] {
  return Object.values(limits).map((limit) => limit[RULE])
}

const idsOf = (calls: readonly Call[]) => calls.map(({ id }) => id).join(' ')

/** Plain comparison, because this runs millions of times. */
function same(seen: unknown, meant: unknown, what: string): void {
  if (!Object.is(seen, meant)) throw new Error(`${what}: ${String(seen)}, in the model ${String(meant)}`)
}
