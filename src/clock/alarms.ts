/**
 * Any number of alarms on one timer. The alarms lie in a heap, the earliest on top, and only that
 * one has a timer: a limiter with waiters on a million keys has one. An alarm never rings before
 * its time by the clock, whatever the timer does.
 */
import type { Clock, StopTimer } from './clock.ts'

export class Alarm {
  declare readonly atUs: number
  declare readonly ring: () => void
  /** Its place in the heap; -1 before it is set, and once it has rung or was stopped. */
  declare place: number

  constructor(atUs: number, ring: () => void) {
    this.atUs = atUs
    this.ring = ring
    this.place = -1
  }
}

const NO_TIMER: StopTimer = () => {}

export class Alarms {
  readonly #clock: Clock
  readonly #keepAlive: boolean
  readonly #heap: Alarm[] = []
  /** When the timer fires, and what stops it; Infinity when there is none. */
  #timerUs = Number.POSITIVE_INFINITY
  #stopTimer: StopTimer = NO_TIMER
  #rests: boolean

  /**
   * `rests`: when the last alarm is stopped, the timer runs on for the next one, and no process
   * stays alive for it.
   */
  constructor(clock: Clock, keepAlive: boolean, rests = false) {
    this.#clock = clock
    this.#keepAlive = keepAlive
    this.#rests = rests
  }

  /** `atUs`: Infinity for one that only waits to be stopped. */
  set(atUs: number, ring: () => void): Alarm {
    const alarm = new Alarm(atUs, ring)
    this.add(alarm)
    return alarm
  }

  /** Sets one that is not set: what waits for it may be the alarm itself. */
  add(alarm: Alarm): void {
    alarm.place = this.#heap.length
    if (alarm.place === 0 && this.#keepAlive) this.#stopTimer.keepAlive?.(true)
    this.#heap.push(alarm)
    this.#rise(alarm)
    this.#arm()
  }

  /** Whether it had neither rung nor been stopped before. */
  stop(alarm: Alarm): boolean {
    if (alarm.place < 0) return false
    this.#remove(alarm)
    if (this.#heap.length === 0) this.#rest()
    return true
  }

  /** No more timers but for the alarms that are set. */
  close(): void {
    this.#rests = false
    if (this.#heap.length === 0) this.#disarm()
  }

  #arm(): void {
    const next = this.#heap[0]
    if (next === undefined || this.#timerUs <= next.atUs) return
    const leftUs = Math.max(0, next.atUs - this.#clock.nowUs())
    // A clock of a caller's may throw: then the timer that was set before stays.
    const stopTimer = this.#clock.setTimer(() => this.#fired(), leftUs, this.#keepAlive)
    this.#disarm()
    this.#stopTimer = stopTimer
    this.#timerUs = next.atUs
  }

  /** Nothing is left to ring for. */
  #rest(): void {
    if (this.#rests && this.#stopTimer.keepAlive !== undefined) this.#stopTimer.keepAlive(false)
    else this.#disarm()
  }

  #disarm(): void {
    this.#timerUs = Number.POSITIVE_INFINITY
    this.#stopTimer()
    this.#stopTimer = NO_TIMER
  }

  /**
   * Timers may fire early, and the alarm this one was set for may be gone: what is not due yet gets
   * a new timer.
   */
  #fired(): void {
    this.#timerUs = Number.POSITIVE_INFINITY
    this.#stopTimer = NO_TIMER
    for (let [next] = this.#heap; next !== undefined && next.atUs <= this.#clock.nowUs(); [next] = this.#heap) {
      this.#remove(next)
      next.ring()
    }
    this.#arm()
  }

  #remove(alarm: Alarm): void {
    const last = this.#heap.pop() as Alarm
    if (last !== alarm) {
      this.#put(last, alarm.place)
      this.#rise(last)
      this.#sink(last)
    }
    alarm.place = -1
  }

  #rise(alarm: Alarm): void {
    while (alarm.place > 0) {
      const parent = this.#heap[(alarm.place - 1) >> 1] as Alarm
      if (parent.atUs <= alarm.atUs) return
      this.#swap(alarm, parent)
    }
  }

  #sink(alarm: Alarm): void {
    for (;;) {
      const left = this.#heap[2 * alarm.place + 1]
      const right = this.#heap[2 * alarm.place + 2]
      const child = right !== undefined && left !== undefined && right.atUs < left.atUs ? right : left
      if (child === undefined || child.atUs >= alarm.atUs) return
      this.#swap(child, alarm)
    }
  }

  #swap(lower: Alarm, upper: Alarm): void {
    const { place } = lower
    this.#put(lower, upper.place)
    this.#put(upper, place)
  }

  #put(alarm: Alarm, place: number): void {
    this.#heap[place] = alarm
    alarm.place = place
  }
}
