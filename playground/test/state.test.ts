/** The state of the playground as an address, and back. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { addressOf, FIRST_STATE, freshTraffic, fromAddress, SCENES, type State, tapeState, toAddress } from '../src/playground/state.ts'
import { equalLimits, TYPES } from '../src/simulation/limits.ts'
import { TAPES } from '../src/simulation/tapes.ts'
import { COLUMNS, MAX_IN_COLUMN, NUMBERS, NUMBERS_OF, type Traffic, type TrafficKind } from '../src/simulation/traffic.ts'

const kinds = (Object.keys(NUMBERS_OF) as TrafficKind[]).filter((kind) => kind !== 'tape' && kind !== 'pasted')

const traffic: fc.Arbitrary<Traffic> = fc.constantFrom(...kinds).chain((kind) => {
  const numbers = Object.fromEntries(NUMBERS_OF[kind].map((name) => [name, fc.integer(NUMBERS[name])]))
  const columns = fc.array(fc.integer({ min: 0, max: MAX_IN_COLUMN }), { minLength: COLUMNS, maxLength: COLUMNS })
  return fc.record({ kind: fc.constant(kind), ...numbers, ...(kind === 'drawn' ? { columns } : {}) }) as unknown as fc.Arbitrary<Traffic>
})

const state: fc.Arbitrary<State> = fc.record({
  traffic,
  limits: fc
    .tuple(fc.integer({ min: 1, max: 100_000 }), fc.constantFrom('1s', '250ms', '5min'))
    .map(([permits, per]) => equalLimits(permits, per)),
  shown: fc.subarray([...TYPES], { minLength: 1 }),
})

describe('an address', () => {
  test('says everything that is shown', () => {
    fc.assert(
      fc.property(state, (shown) => {
        expect(fromAddress(toAddress(shown))).toEqual(shown)
      }),
    )
  })

  test('keeps options of a single limit', () => {
    const limits = {
      ...FIRST_STATE.limits,
      fixedWindow: { type: 'fixedWindow', limit: 3, window: '250ms', anchor: 'first' },
      slidingWindow: { type: 'slidingWindow', limit: 3, window: '1min', slots: 4 },
      gcra: { type: 'gcra', rate: '5/10s', burst: 7 },
    }
    expect(fromAddress(toAddress({ ...FIRST_STATE, limits })).limits).toEqual(limits)
  })

  test('keeps pasted times', () => {
    expect(fromAddress(toAddress({ ...FIRST_STATE, traffic: { kind: 'pasted', text: '0, 10\n 20' } })).traffic).toEqual({
      kind: 'pasted',
      text: '0 10 20',
    })
  })

  test('is not made of what is too long for one', () => {
    const pasted = (count: number): State => ({
      ...FIRST_STATE,
      traffic: { kind: 'pasted', text: Array.from({ length: count }, (_, k) => k).join(',') },
    })
    expect(addressOf(pasted(100))).toBe(toAddress(pasted(100)))
    expect(addressOf(pasted(2_500))).toBeUndefined()
    expect(addressOf(pasted(100_000))).toBeUndefined()
  })

  test('is short and readable', () => {
    expect(toAddress(FIRST_STATE)).toBe('traffic=boundary&count=10&atSecond=1&after=20')
    expect(toAddress({ ...FIRST_STATE, limits: { ...FIRST_STATE.limits, gcra: { type: 'gcra', rate: '5/s', burst: 2 } } })).toContain(
      'gcra=2,5/s',
    )
  })

  test('of every example leads to it', () => {
    for (const scene of Object.values(SCENES)) expect(fromAddress(toAddress(scene))).toEqual(scene)
    for (const { id } of Object.values(TAPES).flat()) {
      expect(fromAddress(toAddress(tapeState(id) as State))).toEqual(tapeState(id))
      expect(fromAddress(`traffic=tape&id=${id}`)).toEqual(tapeState(id))
    }
  })

  test('of an example with all six rows leads to all six', () => {
    const all = { ...(tapeState('token-bucket-walkthrough') as State), shown: TYPES }
    expect(fromAddress(toAddress(all))).toEqual(all)
  })

  test.each([
    '',
    'traffic=nonsense',
    'traffic=constructor',
    'traffic=tape&id=none',
    'gcra=-1,1/s',
    'gcra=5,fast',
    'show=nothing',
    'slidingLog=1e99,1s',
    '%%%',
    'count=-1',
  ])('that makes no sense (%s) is the beginning', (text) => {
    expect(fromAddress(text)).toEqual(FIRST_STATE)
  })

  test('may have a limit that admits nothing', () => {
    expect(fromAddress('gcra=0,1/s').limits.gcra).toEqual({ type: 'gcra', burst: 0, rate: '1/s' })
  })

  test('never throws, whatever is in it', () => {
    const names = ['traffic', 'id', 'columns', 'times', 'show', ...TYPES, ...Object.keys(NUMBERS)]
    const anything = fc.dictionary(
      fc.constantFrom(...names),
      fc.oneof(fc.string(), fc.constantFrom('drawn', 'pasted', 'tape', 'gcra', '1', '1s', '9/s,9')),
    )
    fc.assert(
      fc.property(anything, (parts) => {
        const shown = fromAddress(new URLSearchParams(parts).toString())
        const once = fromAddress(toAddress(shown))
        expect(fromAddress(toAddress(once))).toEqual(once)
      }),
    )
  })
})

test('numbers that an address leaves out are those of a fresh traffic', () => {
  expect(fromAddress('traffic=steady&perSecond=3').traffic).toEqual({ ...freshTraffic('steady'), perSecond: 3 })
})
