/** The scene of the playground, and its form as an address. */
import { equalLimits, FIELDS, type Limits, type LimitType, shapeOf, TYPES } from '../simulation/limits.ts'
import { tapeOf } from '../simulation/tapes.ts'
import { COLUMNS, MAX_IN_COLUMN, NUMBERS, NUMBERS_OF, type NumberName, type Traffic, type TrafficKind } from '../simulation/traffic.ts'
import type { LimitData } from '../sluice.ts'

export interface State {
  readonly traffic: Traffic
  readonly limits: Limits
  readonly shown: readonly LimitType[]
}

export const FIRST_LIMITS = equalLimits(10, '1s')

export const FIRST_STATE: State = { traffic: freshTraffic('boundary'), limits: FIRST_LIMITS, shown: TYPES }

/** Longer ones are cut off by mail programs and chats. */
const MAX_ADDRESS = 8_000

const FIRST_COLUMNS: readonly number[] = Array.from({ length: COLUMNS }, (_, k) => Math.round(3 + 3 * Math.sin(k / 2.5)))

/** A traffic of a kind, with numbers that show something. */
export function freshTraffic(kind: TrafficKind): Traffic {
  const numbers = Object.fromEntries(NUMBERS_OF[kind].map((name) => [name, NUMBERS[name].first]))
  if (kind === 'drawn') return { kind, columns: FIRST_COLUMNS, seconds: NUMBERS.seconds.first }
  if (kind === 'pasted') return { kind, text: '0, 100, 200, 900, 950, 990, 1000, 1001, 1002, 1500' }
  return { kind, ...numbers } as unknown as Traffic
}

/** A worked example: its calls, its limit, and no other row. */
export function tapeState(id: string): State | undefined {
  const tape = tapeOf(id)
  if (tape === undefined) return undefined
  const type = tape.limit.type as LimitType
  return { traffic: { kind: 'tape', id }, limits: { ...FIRST_LIMITS, [type]: tape.limit }, shown: [type] }
}

export const SCENES: Readonly<Record<'boundary' | 'flash' | 'crawler' | 'steady' | 'poisson' | 'many', State>> = {
  boundary: FIRST_STATE,
  flash: { ...FIRST_STATE, traffic: freshTraffic('flash') },
  crawler: { ...FIRST_STATE, traffic: freshTraffic('crawler') },
  steady: { ...FIRST_STATE, traffic: { kind: 'steady', perSecond: 20, seconds: 4 } },
  poisson: { ...FIRST_STATE, traffic: { kind: 'poisson', perSecond: 12, seconds: 6, seed: 7 } },
  many: { ...FIRST_STATE, limits: equalLimits(500, '1s'), traffic: { kind: 'poisson', perSecond: 1_000, seconds: 100, seed: 3 } },
}

/**
 * The address of a state, or undefined where it would be too long: a long text is not even looked
 * through for it.
 */
export function addressOf(state: State): string | undefined {
  if (state.traffic.kind === 'pasted' && state.traffic.text.length > 2 * MAX_ADDRESS) return undefined
  const address = toAddress(state)
  return address.length <= MAX_ADDRESS ? address : undefined
}

export function toAddress({ traffic, limits, shown }: State): string {
  const parts = new URLSearchParams({ traffic: traffic.kind })
  for (const name of NUMBERS_OF[traffic.kind]) parts.set(name, String((traffic as unknown as Record<NumberName, number>)[name]))
  if (traffic.kind === 'drawn') parts.set('columns', traffic.columns.join('.'))
  if (traffic.kind === 'pasted') parts.set('times', traffic.text.replace(/[\s,;]+/g, ' ').trim())
  if (traffic.kind === 'tape') parts.set('id', traffic.id)
  // Of a worked example only its own row is shown unless more is said: then all are named.
  if (shown.length < TYPES.length || traffic.kind === 'tape') parts.set('show', shown.join('.'))
  for (const type of TYPES) {
    const written = optionsOf(limits[type])
    if (written !== optionsOf(FIRST_LIMITS[type])) parts.set(type, written)
  }
  // Readable where that is allowed: these stand for themselves in the part after #.
  return parts.toString().replace(/%2F/g, '/').replace(/%2C/g, ',')
}

const optionsOf = (data: LimitData) =>
  FIELDS[data.type as LimitType]
    .map((name) => data[name])
    .filter((value) => value !== undefined)
    .join(',')

/** Whether two limits of a type say the same, in whatever order. */
export const isSameLimit = (one: LimitData, other: LimitData): boolean =>
  FIELDS[one.type as LimitType].every((name) => one[name] === other[name])

/** Parts of an address that make no sense are ignored. */
export function fromAddress(text: string): State {
  const parts = new URLSearchParams(text)
  const traffic = trafficFrom(parts)
  const limits = Object.fromEntries(TYPES.map((type) => [type, limitFromOptions(type, parts.get(type)) ?? FIRST_LIMITS[type]])) as Limits
  const shown = (parts.get('show') ?? '').split('.').filter((type): type is LimitType => TYPES.includes(type as LimitType))
  const state = { traffic, limits, shown: shown.length === 0 ? TYPES : TYPES.filter((type) => shown.includes(type)) }
  return traffic.kind === 'tape' && text.indexOf('show=') < 0 ? (tapeState(traffic.id) ?? state) : state
}

function trafficFrom(parts: URLSearchParams): Traffic {
  const kind = parts.get('traffic') as TrafficKind
  if (!Object.hasOwn(NUMBERS_OF, kind)) return FIRST_STATE.traffic
  if (kind === 'tape') {
    const id = parts.get('id') ?? ''
    return tapeOf(id) === undefined ? FIRST_STATE.traffic : { kind, id }
  }
  const traffic: Record<string, unknown> = { ...freshTraffic(kind) }
  for (const name of NUMBERS_OF[kind]) traffic[name] = numberFrom(parts.get(name), name) ?? traffic[name]
  if (kind === 'drawn' && parts.has('columns')) traffic.columns = columnsFrom(parts.get('columns') as string)
  if (kind === 'pasted' && parts.has('times')) traffic.text = parts.get('times')
  return traffic as unknown as Traffic
}

function numberFrom(text: string | null, name: NumberName): number | undefined {
  const value = Number(text ?? Number.NaN)
  return text !== '' && value >= NUMBERS[name].min && value <= NUMBERS[name].max ? value : undefined
}

function columnsFrom(text: string): number[] {
  const counts = text.split('.').map((count) => Math.min(MAX_IN_COLUMN, Math.max(0, Math.trunc(Number(count)) || 0)))
  return Array.from({ length: COLUMNS }, (_, k) => counts[k] ?? 0)
}

function limitFromOptions(type: LimitType, text: string | null): LimitData | undefined {
  if (text === null) return undefined
  const values = text.split(',')
  const fields = FIELDS[type].flatMap((name, k) => (values[k] === undefined ? [] : [[name, valueFrom(values[k])]]))
  const data = { type, ...Object.fromEntries(fields) } as LimitData
  try {
    shapeOf(data)
    return data
  } catch {
    return undefined
  }
}

/** As it was written: a number stays a number, all else is text. */
export function valueFrom(text: string): string | number {
  return /^-?\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : text.trim()
}
