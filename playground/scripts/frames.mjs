// `npm run bench:page`: how long the page stands still while 100,000 calls run through six
// algorithms and are drawn.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { launchBrowser } from './browser.mjs'
import { startService } from './service.mjs'

const GOAL_MS = 100
const GOAL_BYTES = 80_000
const isQuick = process.argv.includes('--quick')
const RUNS = isQuick ? 3 : 15
const RESULTS = new URL('../../bench/RESULTS-page.md', import.meta.url)
const ASSETS = fileURLToPath(new URL('../dist/assets/', import.meta.url))
const load = loadavg()[0]

/**
 * In the page: the longest time between two frames, and the longest task of the main thread (0:
 * none of 50 ms or more).
 */
function watchFrames() {
  const seen = { frameMs: 0, taskMs: 0, frames: 0 }
  let last = performance.now()
  const frame = (now) => {
    seen.frameMs = Math.max(seen.frameMs, now - last)
    seen.frames += 1
    last = now
    requestAnimationFrame(frame)
  }
  requestAnimationFrame(frame)
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) seen.taskMs = Math.max(seen.taskMs, duration)
  }).observe({ type: 'longtask' })
  window.seenFrames = seen
}

/**
 * How long the page's main thread has computed: unlike the time on the wall, it is the same however
 * busy the machine is.
 */
async function mainThread(page) {
  const session = await page.context().newCDPSession(page)
  await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  return async () => {
    const { metrics } = await session.send('Performance.getMetrics')
    return metrics.find(({ name }) => name === 'TaskDuration').value * 1000
  }
}

const isDrawn = () => Number(document.querySelector('.playground').dataset.calls) > 99_000
const hasPassed = (call) => Number(document.querySelector('.words').dataset.call) > call

async function measured(browser, url) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
  await page.goto(url)
  await page.waitForSelector('.playground[aria-busy=false]')
  await page.evaluate(watchFrames)
  const cpuMs = await mainThread(page)
  const [beganMs, fromMs] = [await cpuMs(), performance.now()]
  await page.selectOption('[data-part=example]', 'many')
  await page.waitForFunction(isDrawn)
  const drawnMs = performance.now() - fromMs
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))))
  const drawn = await page.evaluate(() => ({ ...window.seenFrames }))
  const drawnCpuMs = (await cpuMs()) - beganMs
  await page.evaluate(() => Object.assign(window.seenFrames, { frameMs: 0, taskMs: 0, frames: 0 }))
  await page.selectOption('.bar select', '20')
  await page.press('[data-part=place]', 'Home')
  await page.click('[data-part=play]')
  await page.waitForFunction(hasPassed, 40_000)
  const played = await page.evaluate(() => ({ ...window.seenFrames }))
  const playedCpuMs = (await cpuMs()) - beganMs - drawnCpuMs
  await page.close()
  return { drawnMs, drawn, played, drawnCpuMs, frameCpuMs: playedCpuMs / played.frames }
}

function spread(values) {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]
  return { median: at(0.5), worst: sorted.at(-1) }
}

const ms = (value) => `${value.toFixed(value < 10 ? 1 : 0)} ms`
const row = (what, values) => `| ${what} | ${ms(spread(values).median)} | ${ms(spread(values).worst)} |`
const verdict = (isReached) => (isReached ? 'reached' : '**not reached**')

const service = await startService('--port', '0')
const browser = await launchBrowser()
const runs = []
try {
  for (let k = 0; k < RUNS; k++) runs.push(await measured(browser, service.url))
} finally {
  await browser.close()
  await service.stop()
}

const bytes = readdirSync(ASSETS)
  .filter((name) => /\.(js|css)$/.test(name))
  .reduce((sum, name) => sum + gzipSync(readFileSync(ASSETS + name)).length, 0)
const worstCpu = Math.max(...runs.map(({ drawnCpuMs }) => drawnCpuMs))
const worst = Math.max(...runs.flatMap(({ drawn, played }) => [drawn.frameMs, played.frameMs]))

const report = `# Results of \`npm run bench:page\`

Written by the bench, not by hand. ${browser.version()} (Chromium), ${cpus()[0].model.trim()}, ${cpus().length} cores; ${RUNS} runs, each on a page of its own. The
load of the machine when it began was ${load.toFixed(1)}: what others do on it makes frames longer, never shorter.

100,000 calls at random moments, 1,000 a second, run through all six algorithms in the worker; then the run is played at twenty times its speed
until call 40,000, with words for the call that it has come to.

## Goals

| goal | target | is |  |
| --- | --- | --- | --- |
| longest frame of all runs | at most ${GOAL_MS} ms | ${ms(worst)} | ${verdict(worst <= GOAL_MS)} |
| CPU time of the main thread from choosing to drawn, as if all were one frame, worst run | at most ${GOAL_MS} ms | ${ms(worstCpu)} | ${verdict(worstCpu <= GOAL_MS)} |
| script and style, gzipped | at most ${GOAL_BYTES.toLocaleString('en')} bytes | ${bytes.toLocaleString('en')} | ${verdict(bytes <= GOAL_BYTES)} |

## In each run

| what | median | worst |
| --- | ---: | ---: |
${row(
  'longest time between two frames, choosing to drawn',
  runs.map(({ drawn }) => drawn.frameMs),
)}
${row(
  'longest task of the main thread meanwhile (0: none of 50 ms)',
  runs.map(({ drawn }) => drawn.taskMs),
)}
${row(
  'longest time between two frames, playing',
  runs.map(({ played }) => played.frameMs),
)}
${row(
  'longest task of the main thread meanwhile (0: none of 50 ms)',
  runs.map(({ played }) => played.taskMs),
)}
${row(
  'from choosing to drawn, all of it',
  runs.map(({ drawnMs }) => drawnMs),
)}
${row(
  'CPU time of the main thread for choosing to drawn, all of it',
  runs.map(({ drawnCpuMs }) => drawnCpuMs),
)}
${row(
  'CPU time of the main thread for a frame, playing',
  runs.map(({ frameCpuMs }) => frameCpuMs),
)}
`
if (!isQuick) writeFileSync(RESULTS, report)
console.log(report)
