// Draws the pictures of docs/guides/load.md from the simulator of test/govern: `node scripts/load-pictures.mjs`, after `npm run build`.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'
import { createLimiter, gcra } from '../dist/index.js'
import { followLoad, knee } from '../dist/load/index.js'
import { fakeClock } from '../dist/testing/index.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const [WIDTH, HEIGHT, LEFT, BOTTOM] = [720, 240, 50, 30]

/** The simulator is TypeScript of the tests. */
async function simulator() {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-pictures-'))
  const file = join(folder, 'judge.mjs')
  const entry = join(root, 'test/govern/simulation.ts')
  const bundle = await rolldown({ input: entry, platform: 'node' })
  await bundle.write({ file, format: 'esm' })
  const found = await import(pathToFileURL(file).href)
  rmSync(folder, { recursive: true })
  return found
}

/** 20 workers of 50 ms under three times the load they can bear; half of them are gone from 30 to 60 s. */
async function kneeLines() {
  const { simulate } = await simulator()
  const service = { kind: 'exponential', ms: 50 }
  const scenario = {
    seconds: 90,
    server: { workers: 20 },
    streams: [{ perSecond: 1200, serviceMs: service }],
    steps: [
      { atS: 30, workers: 10 },
      { atS: 60, workers: 20 },
    ],
  }
  const limits = [[0, 5]]
  const { perSecond } = simulate(scenario, 4, (time) => kneeGate(time, limits))
  return {
    limits,
    goodput: perSecond.map((count, second) => [second + 0.5, count / 20]),
    knee: [
      [0, 20],
      [30, 20],
      [30, 10],
      [60, 10],
      [60, 20],
      [90, 20],
    ],
  }
}

/** knee in front of a counter; windows of half a second, as they are. */
function kneeGate(time, limits) {
  const governor = knee({ min: 1, max: 200 })
  let [state, inflight, ok, sumMs, most, sinceMs] = [governor.initial, 0, 0, 0, 0, 0]
  return {
    tryEnter() {
      if (inflight >= state.limit) return false
      inflight += 1
      most = Math.max(most, inflight)
      return true
    },
    leave(heldMs) {
      inflight -= 1
      ok += 1
      sumMs += heldMs
      const durationMs = time.nowMs - sinceMs
      if (durationMs < 500) return
      state = governor.next(state, { atMs: time.nowMs, durationMs, ok, dropped: 0, latencyMs: sumMs / ok, inflight: most })
      limits.push([time.nowMs / 1000, state.limit])
      ;[ok, sumMs, most, sinceMs] = [0, 0, 0, time.nowMs]
    },
  }
}

/** A rate of 20 to 100 a second by a signal from 20 to 120 ms. */
function followLines() {
  const clock = fakeClock()
  const limiter = createLimiter(gcra({ rate: '100/s', burst: 20 }), { clock })
  let delayMs = 0
  const following = followLoad(limiter, { min: '20/s', max: '100/s', signal: () => delayMs, from: 20, to: 120, clock })
  const lines = { rate: [], signal: [] }
  for (let second = 0; second < 90; second++) {
    delayMs = second < 15 ? 10 : second < 30 ? 70 : second < 55 ? 200 : 15
    clock.advanceMs(1000)
    lines.rate.push([second + 1, following.rate])
    lines.signal.push([second + 1, Math.min(delayMs, 120)])
  }
  following.close()
  return lines
}

function svg(title, top, lines) {
  const x = (second) => (LEFT + (second / 90) * (WIDTH - LEFT - 10)).toFixed(1)
  const y = (value) => (HEIGHT - BOTTOM - (value / top) * (HEIGHT - BOTTOM - 30)).toFixed(1)
  const paths = lines.map(({ points, colour, dash }) => {
    const d = points.map(([second, value], k) => `${k === 0 ? 'M' : 'L'}${x(second)} ${y(Math.min(value, top))}`).join('')
    return `<path d="${d}" fill="none" stroke="${colour}" stroke-width="2"${dash ? ' stroke-dasharray="4 4"' : ''}/>`
  })
  const names = lines.map(({ name, colour }, k) => `<text x="${LEFT + 10 + 220 * k}" y="18" fill="${colour}">${name}</text>`)
  const ticks = [0, 30, 60, 90].map(
    (second) => `<text x="${x(second)}" y="${HEIGHT - 10}" text-anchor="middle" fill="#666">${second} s</text>`,
  )
  const levels = [0, top / 2, top].map((value) => `<text x="${LEFT - 8}" y="${y(value)}" text-anchor="end" fill="#666">${value}</text>`)
  const axis = `<path d="M${LEFT} 25V${HEIGHT - BOTTOM}H${WIDTH - 10}" fill="none" stroke="#999"/>`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="system-ui, sans-serif" font-size="13" role="img">
<title>${title}</title>
<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>
${[axis, ...ticks, ...levels, ...names, ...paths].join('\n')}
</svg>
`
}

const found = await kneeLines()
writeFileSync(
  join(root, 'docs/pictures/load-knee.svg'),
  svg('The limit follows the knee when half of the workers are gone for 30 seconds', 40, [
    { name: 'limit', colour: '#1565c0', points: found.limits },
    { name: 'answers in 50 ms (goodput)', colour: '#2e7d32', points: found.goodput },
    { name: 'workers: the knee', colour: '#888', points: found.knee, dash: true },
  ]),
)
const followed = followLines()
writeFileSync(
  join(root, 'docs/pictures/load-follow.svg'),
  svg('The rate falls while the event loop is late, by at most a tenth a second, and comes back', 120, [
    { name: 'rate a second', colour: '#1565c0', points: followed.rate },
    { name: 'event loop delay, ms', colour: '#c62828', points: followed.signal, dash: true },
  ]),
)
