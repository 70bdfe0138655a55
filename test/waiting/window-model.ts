/**
 * A model of waiting where nothing can be booked ahead: a line in which the first waiter tries
 * again when it was told to, and no other does. The model asks a limiter of its own, which it uses
 * for `consume` and `peek` alone: what those answer is held against the oracles elsewhere.
 */
import { RULE, type StateFields } from '../../src/algorithms/algorithm.ts'
import { createLimiter, type Limit, type Limiter, memoryStore } from '../../src/index.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'
import { type End, type Ended, leastUs, type Model, type ModelWaiter } from './model.ts'

const NEVER = Number.POSITIVE_INFINITY

export class WindowModel implements Model {
  readonly booked: readonly ModelWaiter[] = []
  readonly ended: Ended[] = []
  outside: ModelWaiter[] = []
  readonly #palette: readonly Record<string, Limit>[]
  readonly #names: readonly string[]
  readonly #maxQueue: number
  readonly #clock: FakeClock = fakeClock()
  readonly #store = memoryStore()
  readonly #limiter: Limiter<Record<string, Limit>>
  #retryAtUs = 0
  #index = 0

  constructor(palette: readonly Record<string, Limit>[], maxAheadUs: number, maxQueue: number) {
    const [limits] = palette as [Record<string, Limit>]
    this.#palette = palette
    this.#names = Object.keys(limits)
    this.#maxQueue = maxQueue
    this.#limiter = createLimiter<Record<string, Limit>>(limits, {
      name: 'model',
      store: this.#store,
      clock: this.#clock,
      maxAheadMs: maxAheadUs / 1000,
    })
  }

  get nowUs(): number {
    return this.#clock.nowUs()
  }

  enter(waiter: ModelWaiter): void {
    const waitUs = this.waitUs(waiter.costs)
    const isBehind = this.outside.length > 0 && waiter.costs.some((cost) => cost > 0)
    if (waitUs === NEVER) this.#end(waiter, 'IMPOSSIBLE', 'entering')
    else if (waitUs === 0 && !isBehind) this.#serve(waiter, 'entering')
    else if (this.nowUs + waitUs > waiter.deadlineUs) this.#end(waiter, 'TIMEOUT', 'entering')
    else if (this.outside.length >= this.#maxQueue) this.#end(waiter, 'QUEUE_FULL', 'entering')
    else if (isBehind && this.nowUs + this.#leastUs(waiter) > waiter.deadlineUs) this.#end(waiter, 'TIMEOUT', 'entering')
    else this.#stand(waiter, waitUs)
  }

  #leastUs(waiter: ModelWaiter): number {
    const rules = Object.values(this.#palette[this.#index] as Record<string, Limit>).map((limit) => limit[RULE])
    return leastUs(rules, this.outside, waiter)
  }

  leave(ids: readonly number[]): void {
    for (const waiter of this.outside.filter(({ id }) => ids.includes(id))) {
      this.#takeOut(waiter)
      this.#end(waiter, 'aborted', 'outside')
    }
    this.#goOn()
  }

  consume(costs: readonly number[]): boolean {
    return this.#limiter.consume('k', this.#named(costs)).allowed
  }

  refund(costs: readonly number[]): void {
    this.#limiter.refund('k', this.#named(costs))
    this.#tryAgain()
  }

  reset(): void {
    this.#limiter.reset('k')
    this.#tryAgain()
  }

  update(index: number): void {
    this.#index = index
    this.#limiter.update(this.#palette[index] as Record<string, Limit>)
    this.#tryAgain()
  }

  close(): void {
    for (const waiter of this.outside) this.#end(waiter, 'CLOSED', 'outside')
    this.outside = []
  }

  advanceTo(us: number): void {
    for (let nextUs = this.nextUs(); nextUs <= us; nextUs = this.nextUs()) {
      this.#clock.setUs(Math.max(this.nowUs, nextUs))
      this.#goOn()
      this.#timeOut()
    }
    this.#clock.setUs(us)
  }

  nextUs(): number {
    return Math.min(this.outside.length > 0 ? this.#retryAtUs : NEVER, ...this.outside.map(({ deadlineUs }) => deadlineUs))
  }

  waitUs(costs: readonly number[]): number {
    return Math.round(this.#limiter.peek('k', this.#named(costs)).retryAfterMs * 1000)
  }

  states(limit: number, held: StateFields | undefined): readonly [string, string] {
    return [shown(held), shown(this.#store.inspect('model', this.#names[limit] as string, 'k'))]
  }

  #stand(waiter: ModelWaiter, waitUs: number): void {
    if (this.outside.length === 0) this.#retryAtUs = this.nowUs + waitUs
    this.outside.push(waiter)
  }

  #goOn(): void {
    for (let [first] = this.outside; first !== undefined && this.#retryAtUs <= this.nowUs; [first] = this.outside) this.#ask(first)
  }

  #ask(first: ModelWaiter): void {
    const waitUs = this.waitUs(first.costs)
    if (waitUs > 0 && waitUs < NEVER && this.nowUs + waitUs <= first.deadlineUs) {
      this.#retryAtUs = this.nowUs + waitUs
      return
    }
    this.#takeOut(first)
    if (waitUs === 0) this.#serve(first, 'outside')
    else this.#end(first, waitUs === NEVER ? 'IMPOSSIBLE' : 'TIMEOUT', 'outside')
  }

  #timeOut(): void {
    for (;;) {
      const late = this.outside.find(({ deadlineUs }) => deadlineUs <= this.nowUs)
      if (late === undefined) return
      this.#takeOut(late)
      this.#end(late, 'TIMEOUT', 'outside')
      this.#goOn()
    }
  }

  #tryAgain(): void {
    this.#retryAtUs = 0
    this.#goOn()
  }

  #takeOut(waiter: ModelWaiter): void {
    if (waiter === this.outside[0]) this.#retryAtUs = 0
    this.outside = this.outside.filter((other) => other !== waiter)
  }

  #serve(waiter: ModelWaiter, from: Ended['from']): void {
    if (!this.consume(waiter.costs)) throw new Error(`the model serves ${waiter.costs} too early`)
    this.#end(waiter, 'served', from)
  }

  #end({ id }: ModelWaiter, how: End, from: Ended['from']): void {
    this.ended.push({ id, how, atUs: this.nowUs, from })
  }

  #named(costs: readonly number[]): Record<string, number> {
    return Object.fromEntries(costs.map((cost, k) => [this.#names[k], cost]))
  }
}

function shown(held: StateFields | undefined): string {
  return held === undefined ? 'nothing' : JSON.stringify(held)
}
