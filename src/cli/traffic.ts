/**
 * Traffic to try limits on: the moments at which calls arrive, in milliseconds from the start. The
 * page in playground/ uses it too.
 */

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

const ARRIVALS = /^\d+(\.\d+)?(,\d+(\.\d+)?)*$/
/** `25/s for 3s`, several one after the other. */
const SPELL = /^(\d+(?:\.\d+)?) ?\/ ?(ms|s|min) for (\d+(?:\.\d+)?) ?(ms|s|min)$/
const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, min: 60_000 }
/** More would not be looked at. */
const MOST_CALLS = 100_000

/**
 * Traffic by its name, by its pace (`25/s for 3s, 0/s for 1s`), or the arrivals themselves as
 * milliseconds (`0,10,20`). Undefined for anything else.
 */
export function trafficNamed(text: string): Traffic | undefined {
  const known = TRAFFIC.find(({ name }) => name === text)
  if (known !== undefined) return known
  if (!ARRIVALS.test(text)) return paced(text)
  const arrivalsMs = inOrder(text.split(',').map(Number))
  return { name: 'given', title: `The ${arrivalsMs.length} calls given`, arrivalsMs, lengthMs: (arrivalsMs.at(-1) as number) * 1.25 + 100 }
}

function paced(text: string): Traffic | undefined {
  const arrivalsMs: number[] = []
  let fromMs = 0
  for (const spell of text.split(',')) {
    const [, count, per, span, unit] = SPELL.exec(spell.trim()) ?? []
    if (count === undefined) return undefined
    const toMs = fromMs + Number(span) * (UNIT_MS[unit as string] as number)
    const everyMs = (UNIT_MS[per as string] as number) / Number(count)
    if (arrivalsMs.length + (toMs - fromMs) / everyMs > MOST_CALLS) return undefined
    if (Number(count) > 0) arrivalsMs.push(...steady(everyMs, fromMs, toMs))
    fromMs = toMs
  }
  return fromMs === 0 ? undefined : { name: 'given', title: `Calls at ${text}`, arrivalsMs, lengthMs: fromMs * 1.25 }
}
