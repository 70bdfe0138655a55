/** Traffic to try limits on: the moments at which calls arrive, in milliseconds from the start. */

export interface Traffic {
  readonly name: string
  readonly title: string
  readonly arrivalsMs: readonly number[]
  readonly lengthMs: number
}

/** `count` calls at one moment. */
const burst = (count: number, atMs: number): number[] => new Array<number>(count).fill(atMs)

/** One call every `everyMs`, from `fromMs` until before `toMs`. */
function steady(everyMs: number, fromMs: number, toMs: number): number[] {
  return Array.from({ length: Math.ceil((toMs - fromMs) / everyMs) }, (_, k) => fromMs + k * everyMs)
}

const inOrder = (...arrivals: readonly number[][]): number[] => arrivals.flat().sort((a, b) => a - b)

export const TRAFFIC: readonly Traffic[] = [
  {
    name: 'boundary-burst',
    title: 'Ten calls just before a full second, ten just after it',
    arrivalsMs: inOrder(burst(10, 990), burst(10, 1_010)),
    lengthMs: 3_000,
  },
  {
    name: 'after-idling',
    title: 'Fifteen calls at once, three quiet seconds, fifteen at once again',
    arrivalsMs: inOrder(burst(15, 0), burst(15, 3_000)),
    lengthMs: 4_000,
  },
  {
    name: 'too-fast',
    title: 'Twenty calls a second for three seconds: twice what is allowed',
    arrivalsMs: steady(50, 0, 3_000),
    lengthMs: 3_000,
  },
]
