/**
 * Scenes with a simulated server: what they compute, how they stand in an address, how they are
 * drawn.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { PALETTE_NAMES, type Palette } from '../src/playground/frame.ts'
import { SvgPen } from '../src/playground/pen.ts'
import { chartDrawing, roundTop } from '../src/scenes/chart.ts'
import { kneeScene } from '../src/scenes/knee.ts'
import { slowScene } from '../src/scenes/slow.ts'
import { BOARDS, FIRST_SCENES, isSceneAddress, numbersOf, type SceneState, sceneAddress, sceneFrom } from '../src/scenes/state.ts'
import { GOVERNOR_NAMES, playGoverned } from '../src/simulation/governed.ts'
import { SAMPLES } from '../src/simulation/samples.ts'
import { playSlow, type SlowJob } from '../src/simulation/slow.ts'
import { COLUMNS } from '../src/simulation/traffic.ts'
import { en } from '../src/text/en.ts'
import { zh } from '../src/text/zh.ts'

const columnsOf = (scene: SceneState['scene']) =>
  fc.array(fc.integer({ min: BOARDS[scene].least, max: BOARDS[scene].most }), { minLength: COLUMNS, maxLength: COLUMNS })
const numbers = (scene: SceneState['scene']) =>
  fc.record(Object.fromEntries(Object.entries(numbersOf(scene)).map(([name, bounds]) => [name, fc.integer(bounds)])))
const state: fc.Arbitrary<SceneState> = fc.oneof(
  fc.tuple(numbers('slow'), columnsOf('slow')).map(([own, columns]) => ({ ...FIRST_SCENES.slow, ...own, columns })),
  fc
    .tuple(numbers('knee'), columnsOf('knee'), fc.constantFrom(...GOVERNOR_NAMES))
    .map(([own, columns, governor]) => ({ ...FIRST_SCENES.knee, ...own, columns, governor })),
)

/** Another value in the second half of the time. */
const changedLater = <S extends SceneState>(job: S, value: number): S => ({
  ...job,
  columns: job.columns.map((usual, k) => (k < COLUMNS / 2 ? usual : value)),
})
const firstHalf = (line: ArrayLike<number>) => Array.from(line).slice(0, SAMPLES / 2)

describe('calls get slow', () => {
  test('with any numbers, concurrency lets no more run than its limit, and every call is answered or gives up', async () => {
    const job = fc.tuple(numbers('slow'), columnsOf('slow')).map(([own, columns]) => ({ ...FIRST_SCENES.slow, ...own, columns }))
    await fc.assert(
      fc.asyncProperty(job, async (each: SlowJob) => {
        const { calls, rateAlone, atOnce } = await playSlow(each)
        expect(atOnce.mostInflight).toBeLessThanOrEqual(each.max)
        expect(Math.max(...atOnce.inflight)).toBeLessThanOrEqual(each.max)
        for (const side of [rateAlone, atOnce]) expect(side.inTime + side.late + side.gaveUp).toBe(calls)
        // Calls wait at the rate limit at most for as long as they may, and then the server takes
        // what it takes.
        expect(atOnce.longestMs).toBeLessThanOrEqual(each.waitMs + Math.ceil(each.max / 10) * 2_000)
      }),
      { numRuns: 6, seed: 7 },
    )
  })

  test('while nothing gets slow both are alike, and a stall fills the server only without concurrency', async () => {
    const calm = await playSlow({ ...FIRST_SCENES.slow, max: 100, columns: new Array(COLUMNS).fill(1) })
    expect(calm.atOnce).toEqual(calm.rateAlone)
    expect(calm.rateAlone.late + calm.rateAlone.gaveUp).toBe(0)
    const slow = await playSlow(FIRST_SCENES.slow)
    expect(slow.rateAlone.mostInflight).toBeGreaterThan(30 * FIRST_SCENES.slow.max)
    expect(slow.atOnce).toMatchObject({ mostInflight: 10, late: 0 })
    expect(slow.atOnce.inTime).toBeGreaterThan(slow.rateAlone.inTime)
  })

  test('the past does not change when the server is made slower later', async () => {
    const [one, other] = await Promise.all([playSlow(FIRST_SCENES.slow), playSlow(changedLater(FIRST_SCENES.slow, 20))])
    expect(firstHalf(other.atOnce.inflight)).toEqual(firstHalf(one.atOnce.inflight))
    expect(firstHalf(other.rateAlone.inflight)).toEqual(firstHalf(one.rateAlone.inflight))
    expect(other.rateAlone.mostInflight).toBeGreaterThan(one.rateAlone.mostInflight)
  })
})

describe('a limit that finds its knee', () => {
  const play = playGoverned(FIRST_SCENES.knee)

  test('knee comes near to the best before and after each step, where a fixed limit pays with waiting', () => {
    const { governed, fixed, bestLimit, bestInTime } = play
    expect(governed.inTime / bestInTime).toBeGreaterThan(0.9)
    expect(governed.meanMs).toBeLessThan(fixed.meanMs / 2)
    // Ten seconds after each step, and at the end.
    for (const sample of [83, 127, 167, SAMPLES - 1]) {
      expect((governed.limit[sample] as number) / (bestLimit[sample] as number)).toBeGreaterThan(0.7)
      expect((governed.limit[sample] as number) / (bestLimit[sample] as number)).toBeLessThan(1.6)
    }
  })

  test('nothing exceeds its limit, nor what the workers can do', () => {
    for (const { limit, inflight, inTime } of [play.governed, play.fixed]) {
      // Calls that were let in stay when the limit falls, so they may be above it for as long as
      // they take.
      expect(inflight.every((count, k) => count <= Math.max(limit[k] as number, limit[k - 1] ?? 200, limit[k - 2] ?? 200))).toBe(true)
      expect(inTime).toBeLessThan(play.bestInTime * 1.02)
    }
  })

  test('the past does not change when the server is made faster later', () => {
    const other = playGoverned(changedLater(FIRST_SCENES.knee, 40))
    for (const name of ['limit', 'inflight', 'perSecond', 'latencyMs'] as const) {
      expect(firstHalf(other.governed[name])).toEqual(firstHalf(play.governed[name]))
    }
  })

  test('the other governors play too', () => {
    const [aimd, vegas] = (['aimd', 'vegas'] as const).map((governor) => playGoverned({ ...FIRST_SCENES.knee, governor }).governed)
    expect(aimd?.limit.at(-1)).toBeGreaterThan(2 * 20)
    expect(vegas?.inTime).toBeGreaterThan(0.8 * play.bestInTime)
  })
})

describe('an address', () => {
  test('says all of a scene', () => {
    fc.assert(
      fc.property(state, (shown) => {
        expect(isSceneAddress(sceneAddress(shown))).toBe(true)
        expect(sceneFrom(sceneAddress(shown))).toEqual(shown)
      }),
    )
  })

  test.each(['scene=slow', 'scene=slow&max=0&waitMs=x&rate=1e9&columns=', 'scene=slow&perSecond=2.5&columns=99.-1.x'])(
    'that makes no sense (%s) is the scene as it begins',
    (address) => {
      expect(sceneFrom(address)).toEqual(FIRST_SCENES.slow)
    },
  )

  test.each(['', 'traffic=steady', 'scene=constructor', 'scene='])('of no scene (%s) is none', (address) => {
    expect(isSceneAddress(address)).toBe(false)
  })
})

const palette = Object.fromEntries(PALETTE_NAMES.map((name, k) => [name, `rgb(${k}, 0, 0)`])) as unknown as Palette

describe('the drawing', async () => {
  const slow = await playSlow(FIRST_SCENES.slow)
  const knee = playGoverned(FIRST_SCENES.knee)

  test.each([390, 960])('stays within its frame at %i pixels, in both languages, and says only what is there', (width) => {
    for (const texts of [en, zh]) {
      for (const chart of [slowScene.chart(FIRST_SCENES.slow, slow, texts), kneeScene.chart(FIRST_SCENES.knee, knee, texts)]) {
        const drawing = chartDrawing(chart)
        const frame = drawing.frame(width)
        const pen = new SvgPen()
        drawing.draw(pen, frame, palette)
        const svg = pen.svg(frame.width, frame.height, drawing.label)
        expect(svg).not.toMatch(/NaN|undefined|Infinity|object/)
        const points = [...svg.matchAll(/(?:[ML "])([\d.-]+)[ ,]([\d.-]+)(?=[L ",hv])/g)]
        expect(points.length).toBeGreaterThan(500)
        for (const [, x, y] of points) {
          expect(Number(x)).toBeLessThanOrEqual(width)
          expect(Number(y)).toBeLessThanOrEqual(frame.height)
        }
      }
    }
  })

  test('no sentence is left without its figures', () => {
    for (const texts of [en, zh]) {
      const said = [
        slowScene.conclusion(FIRST_SCENES.slow, slow, texts),
        slowScene.moment(FIRST_SCENES.slow, slow, 100, texts),
        kneeScene.conclusion(FIRST_SCENES.knee, knee, texts),
        kneeScene.moment(FIRST_SCENES.knee, knee, 100, texts),
      ]
      expect(said.join(' ')).not.toMatch(/undefined|NaN|Infinity|object/)
    }
  })

  test('a scale ends at a round number, no lower than its values', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1e6, noNaN: true }), (most) => {
        expect(roundTop(most)).toBeGreaterThanOrEqual(most)
        expect(roundTop(most)).toBeLessThanOrEqual(Math.max(1, most * 2))
        expect(Number.isInteger(roundTop(most))).toBe(true)
      }),
    )
  })
})
