/**
 * Simulated time: what is to happen lies in a heap, the earliest on top; of the same time, what was
 * set first.
 */
import type { Clock, StopTimer } from '../../src/clock/clock.ts'

interface Event {
  readonly atUs: number
  readonly order: number
  fn: (() => void) | undefined
}

const isBefore = (a: Event, b: Event) => a.atUs < b.atUs || (a.atUs === b.atUs && a.order < b.order)

export class SimulatedTime implements Clock {
  #nowUs = 0
  #order = 0
  readonly #heap: Event[] = []

  nowUs(): number {
    return this.#nowUs
  }

  get nowMs(): number {
    return this.#nowUs / 1000
  }

  setTimer(fn: () => void, us: number): StopTimer {
    const event: Event = { atUs: this.#nowUs + Math.max(0, Math.round(us)), order: this.#order++, fn }
    this.#push(event)
    return () => {
      event.fn = undefined
    }
  }

  after(ms: number, fn: () => void): StopTimer {
    return this.setTimer(fn, ms * 1000)
  }

  runUntilMs(ms: number): void {
    for (let [next] = this.#heap; next !== undefined && next.atUs <= ms * 1000; [next] = this.#heap) {
      this.#pop()
      this.#nowUs = next.atUs
      next.fn?.()
    }
    this.#nowUs = ms * 1000
  }

  #push(event: Event): void {
    const heap = this.#heap
    let place = heap.length
    heap.push(event)
    while (place > 0) {
      const parent = (place - 1) >> 1
      if (!isBefore(event, heap[parent] as Event)) break
      heap[place] = heap[parent] as Event
      place = parent
    }
    heap[place] = event
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop() as Event
    if (heap.length === 0) return
    let place = 0
    for (;;) {
      let child = 2 * place + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Event, heap[child] as Event)) child += 1
      if (!isBefore(heap[child] as Event, last)) break
      heap[place] = heap[child] as Event
      place = child
    }
    heap[place] = last
  }
}
