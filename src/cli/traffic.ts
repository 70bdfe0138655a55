/** Traffic to try limits on: the moments at which calls arrive, in milliseconds from the start. The page in playground/ uses it too. */

export interface Traffic {
  readonly name: string
  readonly title: string
  readonly arrivalsMs: readonly number[]
  readonly lengthMs: number
}

/** `count` calls at one moment. */
export const burst = (count: number, atMs: number): number[] => new Array<number>(count).fill(atMs)

/** One call every `everyMs`, from `fromMs` until before `toMs`. */
export function steady(everyMs: number, fromMs: number, toMs: number): number[] {
  return Array.from({ length: Math.ceil((toMs - fromMs) / everyMs) }, (_, k) => fromMs + k * everyMs)
}

export const inOrder = (...arrivals: readonly number[][]): number[] => arrivals.flat().sort((a, b) => a - b)

export const TRAFFIC: readonly Traffic[] = [
  {
    name: 'boundary-burst',
    title: 'Ten calls just before a full second, ten just after it',
    arrivalsMs: inOrder(burst(10, 990), burst(10, 1_010)),
    lengthMs: 3_000,
  },
  {
    name: 'first-half',
    title: 'Twenty-five calls a second: a window is used up before its first half is over',
    arrivalsMs: steady(40, 0, 3_000),
    lengthMs: 4_000,
  },
  {
    name: 'smoothing',
    title: 'Ten calls at once every second and a half',
    arrivalsMs: inOrder(burst(10, 0), burst(10, 1_500)),
    lengthMs: 3_000,
  },
  {
    name: 'after-idling',
    title: 'Five calls a second, two quiet seconds, then twenty at once',
    arrivalsMs: inOrder(steady(200, 0, 1_000), burst(20, 3_000)),
    lengthMs: 4_500,
  },
]

/** Traffic by its name, or the arrivals themselves as milliseconds: `0,10,20`. Undefined for anything else. */
export function trafficNamed(text: string): Traffic | undefined {
  const known = TRAFFIC.find(({ name }) => name === text)
  if (known !== undefined || !/^\d+(\.\d+)?(,\d+(\.\d+)?)*$/.test(text)) return known
  const arrivalsMs = inOrder(text.split(',').map(Number))
  return { name: 'given', title: `The ${arrivalsMs.length} calls given`, arrivalsMs, lengthMs: (arrivalsMs.at(-1) as number) * 1.25 + 100 }
}
