/** Where in the run we are: a call that is looked at, and while playing a time that passes. */

export const SPEEDS: readonly [number, ...number[]] = [0.02, 0.1, 0.25, 0.5, 1, 2, 5, 20, 100]

/** A run should be over before one has had enough of it. */
const USUAL_MS = 8_000

/** The speed at which a run of this length takes about as long as it should. */
export function usualSpeed(lengthUs: number): number {
  const wanted = Math.log(lengthUs / 1000 / USUAL_MS)
  return SPEEDS.reduce((best, speed) => (Math.abs(Math.log(speed) - wanted) < Math.abs(Math.log(best) - wanted) ? speed : best), SPEEDS[0])
}

export interface PlayerListener {
  /** `call` is the last that has come by `atUs`, -1 before the first. */
  moved(call: number, atUs: number, isPlaying: boolean): void
}

export class Player {
  readonly #listener: PlayerListener
  #atUs: Float64Array = new Float64Array(0)
  #lengthUs = 0
  #nowUs = 0
  #call = -1
  #frame: number | undefined
  #lastMs = 0
  /** Simulated seconds a second. */
  speed: number = 1

  constructor(listener: PlayerListener) {
    this.#listener = listener
  }

  get isPlaying(): boolean {
    return this.#frame !== undefined
  }

  get call(): number {
    return this.#call
  }

  /**
   * Stands still and tells nobody: where we were means nothing in another run. `goTo` says where to
   * begin.
   */
  load(atUs: Float64Array, lengthUs: number): void {
    this.#stop()
    this.#atUs = atUs
    this.#lengthUs = lengthUs
  }

  goTo(call: number): void {
    this.pause()
    this.#call = Math.max(0, Math.min(this.#atUs.length - 1, call))
    this.#nowUs = this.#atUs[this.#call] ?? 0
    this.#tell()
  }

  /** To the last call that has come by then. */
  seek(us: number): void {
    this.goTo(this.#lastBy(us))
  }

  play(isFromStart: boolean): void {
    if (this.isPlaying) return
    if (isFromStart || this.#nowUs >= (this.#atUs.at(-1) ?? 0)) this.#nowUs = 0
    this.#lastMs = performance.now()
    this.#frame = requestAnimationFrame((ms) => this.#tick(ms))
    this.#tell()
  }

  pause(): void {
    if (!this.isPlaying) return
    this.#stop()
    this.#tell()
  }

  #stop(): void {
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame)
    this.#frame = undefined
  }

  #tick(ms: number): void {
    this.#nowUs += Math.max(0, ms - this.#lastMs) * 1000 * this.speed
    this.#lastMs = ms
    this.#call = this.#lastBy(this.#nowUs)
    const isOver = this.#nowUs >= this.#lengthUs
    this.#frame = isOver ? undefined : requestAnimationFrame((next) => this.#tick(next))
    this.#tell()
  }

  #tell(): void {
    this.#listener.moved(this.#call, this.#nowUs, this.isPlaying)
  }

  #lastBy(us: number): number {
    let low = 0
    let high = this.#atUs.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#atUs[middle] as number) <= us) low = middle + 1
      else high = middle
    }
    return low - 1
  }
}
