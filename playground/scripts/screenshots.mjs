// `npm run screenshots`: the pictures in docs/pictures, of the built page served by the built
// service, and the picture that the page exports.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { launchBrowser } from './browser.mjs'
import { startService } from './service.mjs'

const PICTURES = fileURLToPath(new URL('../../docs/pictures/', import.meta.url))
const SAMPLE = fileURLToPath(new URL('../../server/sample.yaml', import.meta.url))
const DESKTOP = { width: 1280, height: 990 }
const PHONE = { width: 390, height: 844 }
/** As many seconds of load as a line on the chart needs to be one. */
const LIVE_SECONDS = 62

const drawn = (page) => page.waitForSelector('.playground[aria-busy=false]')

async function shot(browser, url, name, { tab, viewport, colorScheme, locale = 'en-US', act = drawn }) {
  const context = await browser.newContext({ viewport, colorScheme, locale, deviceScaleFactor: viewport === PHONE ? 1.5 : 1 })
  const page = await context.newPage()
  await page.goto(`${url}#${tab}`)
  await act(page)
  await page.screenshot({ path: `${PICTURES}${name}.png` })
  await context.close()
}

/** The same picture in the colours of both themes, as the page exports it. */
async function exported(browser, url, colorScheme, name) {
  const page = await browser.newPage({ colorScheme, locale: 'en-US' })
  await page.goto(url)
  await drawn(page)
  const [download] = await Promise.all([page.waitForEvent('download'), page.click('[data-export=svg]')])
  writeFileSync(`${PICTURES}${name}.svg`, readFileSync(await download.path()))
  await page.close()
}

async function decide(url, path, question) {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(question) }
  await (await fetch(`${url}v1/${path}`, init)).arrayBuffer()
}

/** A few users, one of them in a hurry, and some who wait. */
function load(url) {
  let k = 0
  const timer = setInterval(() => {
    k += 1
    const crowd = 2 + Math.round(2 * Math.sin(k / 60))
    for (let user = 0; user < crowd; user++) void decide(url, 'decide', { limiter: 'api', key: `user:${user}` })
    if (k % 3 === 0) void decide(url, 'decide', { limiter: 'api', key: 'crawler' })
    if (k % 20 === 0) void decide(url, 'decide', { limiter: 'llm', key: 'team:7', cost: { requests: 1, tokens: 4_000 } })
    if (k % 40 === 0) void decide(url, 'acquire', { limiter: 'api', key: `user:${k % 3}`, timeoutMs: 2_000 })
  }, 40)
  return () => clearInterval(timer)
}

async function watchLive(page) {
  await page.waitForFunction((least) => performance.now() > least * 1000, LIVE_SECONDS, { timeout: 0 })
  await page.click('[data-choose=api]')
  // On a phone the table is further down than what it is about.
  await page.evaluate(() => scrollTo(0, 0))
}

async function trySeveral(page) {
  await page.waitForSelector('[data-ask=limiter] option[value=llm]', { state: 'attached' })
  await page.fill('[data-ask=times]', '25')
  await page.click('[data-part=send]')
  await page.waitForSelector('[data-part=series]')
}

async function stepOn(page) {
  await drawn(page)
  await page.fill('[data-part=place]', '60')
  await page.waitForSelector('.words[data-call="60"]')
}

mkdirSync(PICTURES, { recursive: true })
const service = await startService(SAMPLE, '--port', '0', '--top-refused', '5')
const browser = await launchBrowser()
const stopLoad = load(service.url)
const { url } = service
try {
  await Promise.all([
    shot(browser, url, 'live-dark', { tab: 'live', viewport: DESKTOP, colorScheme: 'dark', act: watchLive }),
    shot(browser, url, 'live-phone', { tab: 'live', viewport: PHONE, colorScheme: 'light', act: watchLive }),
  ])
  await shot(browser, url, 'playground-light', { tab: 'playground', viewport: DESKTOP, colorScheme: 'light' })
  await shot(browser, url, 'playground-dark', {
    tab: 'playground?traffic=flash',
    viewport: { width: 1024, height: 780 },
    colorScheme: 'dark',
    act: stepOn,
  })
  await shot(browser, url, 'playground-phone', { tab: 'playground', viewport: PHONE, colorScheme: 'dark', locale: 'zh-CN' })
  await shot(browser, url, 'try-light', { tab: 'try', viewport: DESKTOP, colorScheme: 'light', act: trySeveral })
  await exported(browser, url, 'light', 'boundary-burst')
  await exported(browser, url, 'dark', 'boundary-burst-dark')
} finally {
  stopLoad()
  await browser.close()
  await service.stop()
}
