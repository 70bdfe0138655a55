/** Code that is copied from the page does what the page showed. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { limiterCode } from '../src/playground/code.ts'
import { PALETTE_NAMES, type Palette } from '../src/playground/frame.ts'
import { SvgPen } from '../src/playground/pen.ts'
import { drawPicture, layoutFor } from '../src/playground/picture.ts'
import { FIRST_LIMITS } from '../src/playground/state.ts'
import { kneeScene } from '../src/scenes/knee.ts'
import { slowScene } from '../src/scenes/slow.ts'
import { FIRST_SCENES } from '../src/scenes/state.ts'
import { BOUNDS } from '../src/simulation/governed.ts'
import { TYPES } from '../src/simulation/limits.ts'
import { play } from '../src/simulation/run.ts'
import { TAPES } from '../src/simulation/tapes.ts'
import { arrivalsOf } from '../src/simulation/traffic.ts'
import { knee, type LimitData } from '../src/sluice.ts'
import { en } from '../src/text/en.ts'
import { zh } from '../src/text/zh.ts'
import { DIST } from './support/static-server.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-code-'))
  // The package itself, but for its clock, which the test turns.
  const index = pathToFileURL(join(root, 'dist/index.js')).href
  writeFileSync(
    join(folder, 'sluice.mjs'),
    `import { createLimiter as make } from '${index}'
export * from '${index}'
export const time = { us: 0 }
export const createLimiter = (limits) => make(limits, { clock: { nowUs: () => time.us, setTimer: () => () => undefined } })`,
  )
})

afterAll(() => rmSync(folder, { recursive: true }))

const calls = arrivalsOf({ kind: 'poisson', perSecond: 40, seconds: 3, seed: 11 })
const limits: readonly LimitData[] = [
  ...TYPES.map((type) => FIRST_LIMITS[type]),
  ...Object.values(TAPES)
    .flat()
    .map(({ limit }) => limit),
]

test.each(limits.map((data, k) => [JSON.stringify(data), data, k] as const))(
  'the code for %s makes the decisions of the picture',
  async (_, data, k) => {
    const file = join(folder, `limiter-${k}.mjs`)
    writeFileSync(file, limiterCode(data).replace("'sluice'", "'./sluice.mjs'"))
    const { time } = await import(/* @vite-ignore */ join(folder, 'sluice.mjs'))
    time.us = 0
    const { limiter } = await import(/* @vite-ignore */ file)
    limiter.reset('user:42')
    const admitted = [...calls.atUs].filter((us) => {
      time.us = us
      return limiter.consume('key').allowed
    })
    const [row] = play(calls, [data]).rows
    expect(admitted.length).toBe(row?.totals.admitted)
    expect(admitted.length).toBeGreaterThan(0)
  },
)

test.each(['slow', 'knee'] as const)('the code of the scene %s runs', async (scene) => {
  const text = scene === 'slow' ? slowScene.code(FIRST_SCENES.slow) : kneeScene.code(FIRST_SCENES.knee)
  const href = (path: string) => `'${pathToFileURL(join(root, 'dist', path)).href}'`
  const file = join(folder, `${scene}.mjs`)
  writeFileSync(file, text.replace("'sluice'", href('index.js')).replace("'sluice/load'", href('load/index.js')))
  const { limiter } = await import(/* @vite-ignore */ file)
  expect(limiter.inflight()).toBe(0)
  const most = scene === 'slow' ? FIRST_SCENES.slow.max : knee(BOUNDS).initial.limit
  const permits = Array.from({ length: most + 1 }, () => limiter.consume('key'))
  expect(permits.map(({ allowed }) => allowed)).toEqual([...new Array(most).fill(true), false])
})

describe('an exported picture', () => {
  const palette = Object.fromEntries(PALETTE_NAMES.map((name, k) => [name, `rgb(${k}, 0, 0)`])) as unknown as Palette
  const drawn = (texts: typeof en, width: number) => {
    const pen = new SvgPen()
    const run = play(
      calls,
      TYPES.map((type) => FIRST_LIMITS[type]),
    )
    const layout = layoutFor(width, run.rows.length)
    drawPicture(pen, layout, { run, limits: FIRST_LIMITS, texts, palette })
    return { svg: pen.svg(layout.width, layout.height, 'a < b & c'), layout }
  }

  test.each([
    ['wide', en, 960],
    ['narrow', zh, 360],
  ] as const)('is an SVG that says what it shows (%s)', (_, texts, width) => {
    const { svg } = drawn(texts, width)
    for (const type of TYPES) expect(svg).toContain(`>${texts.types[type]}</text>`)
    expect(svg).toContain('<title>a &lt; b &amp; c</title>')
    expect(svg).not.toMatch(/NaN|undefined|Infinity/)
  })

  test('stays within its frame', () => {
    const { svg, layout } = drawn(en, 960)
    const corners = [...svg.matchAll(/d="M([\d.-]+) ([\d.-]+)/g)]
    expect(corners.length).toBeGreaterThan(100)
    for (const [, x, y] of corners) {
      expect(Number(x)).toBeGreaterThanOrEqual(0)
      expect(Number(x)).toBeLessThanOrEqual(layout.width)
      expect(Number(y)).toBeGreaterThanOrEqual(0)
      expect(Number(y)).toBeLessThanOrEqual(layout.height)
    }
  })
})

// Last raised by 1.5 kB: spans are answered with the line to write, limiters that limit nothing are
// noticed, and stores that are full tell of it.
test('script and style are at most 87.5 kB gzipped, and nothing is inlined', () => {
  const assets = readdirSync(join(DIST, 'assets')).filter((name) => /\.(js|css)$/.test(name))
  expect(assets.map((name) => name.replace(/-[\w-]+\./, '.')).sort()).toEqual(['index.css', 'index.js'])
  const bytes = assets.reduce((sum, name) => sum + gzipSync(readFileSync(join(DIST, 'assets', name))).length, 0)
  expect(bytes).toBeLessThanOrEqual(87_500)
  expect(readFileSync(join(DIST, 'index.html'), 'utf8')).not.toMatch(/<style|style=|<script(?![^>]*\bsrc=)/)
})
