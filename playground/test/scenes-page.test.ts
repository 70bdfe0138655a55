/** The scenes with a simulated server, in a real Chromium. */
import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { sceneFrom } from '../src/scenes/state.ts'
import { zh } from '../src/text/zh.ts'
import { expectNoSeriousIssue } from './support/axe.ts'
import { picture, settled } from './support/chromium.ts'
import { StaticPages } from './support/static-pages.ts'

const pages = new StaticPages()
const playground = pages.playground.bind(pages)

const sentence = (page: Page) => page.textContent('[data-part=conclusion]')
const sentenceHas = (page: Page, text: string) =>
  page.waitForFunction((part) => document.querySelector('[data-part=conclusion]')?.textContent?.includes(part), text)
const columnsIn = (page: Page) => sceneFrom(page.url().split('?')[1] as string).columns
const placeOf = async (page: Page) => Number(await page.inputValue('[data-part=place]'))

describe('calls get slow', () => {
  test('it is chosen like any example, says what it shows, and marks what is above the limit', async () => {
    const page = await playground()
    await page.focus('[data-part=example]')
    await page.selectOption('[data-part=example]', 'slow')
    await page.waitForSelector('[data-scene=slow][aria-busy=false]')
    expect(await page.$eval(':focus', (element) => element.getAttribute('data-part'))).toBe('example')
    expect(await sentence(page)).toBe(
      'Calls take up to 10 times as long. With the rate limit alone 333 then run at once, and 518 answers come too late.' +
        ' With concurrency never more than 10: 306 give up waiting, 0 come too late.',
    )
    expect(await page.textContent('.conclusion .above')).toBe('333')
    expect(await page.textContent('[data-side=rate] .above')).toBe('333 of 10')
    expect(await page.locator('[data-side=both] .above').count()).toBe(0)
    expect(await page.textContent('[data-part=moment]')).toContain('Waiting: 27 (Web 14, App 11, Reports 2)')
    expect(page.workers()).toHaveLength(1)
    // And back to the six algorithms.
    await page.selectOption('[data-part=example]', 'flash')
    await page.waitForSelector('[data-row=gcra]')
  })

  test('a column drawn with the keyboard, and a number, change what happens; a wrong number is told', async () => {
    const page = await playground('scene=slow&columns=1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1')
    expect(await sentence(page)).toMatch(/^With the rate limit alone \d+ run at once, and 0 answers come too late/)
    await page.focus('.board [tabindex="0"]')
    await page.keyboard.press('ArrowRight')
    await page.keyboard.press('End')
    await sentenceHas(page, 'Calls take up to 20 times as long.')
    expect(await page.$eval(':focus', (column) => column.getAttribute('aria-valuetext'))).toBe('2,000 ms')
    await page.fill('[data-number=max]', '3')
    await sentenceHas(page, 'never more than 3')
    await page.fill('[data-number=max]', '0')
    await page.waitForSelector('.error:has-text("At most at once 0: must be a whole number from 1 to 100.")')
    expect(await sentence(page)).toContain('never more than 3')
    await page.waitForFunction(() => location.hash.includes('max=3&') && location.hash.includes('columns=1.20.1.'))
  })
})

describe('a limit that finds its knee', () => {
  test('made slower while it plays, the server is slower from there on, and the play goes on', async () => {
    const page = await playground('scene=knee')
    expect(await sentence(page)).toMatch(/^knee reaches 9\d\s% of the best throughput, at 1\.\d times the best time to an answer\./)
    expect(await page.textContent('.conclusion .above')).toBe('3.7')
    const before = columnsIn(page)
    await page.click('[data-part=play]')
    // From the beginning, although another place was looked at before.
    await page.waitForFunction(() => Number((document.querySelector('[data-part=place]') as HTMLInputElement).value) < 60)
    await page.waitForFunction(() => Number((document.querySelector('[data-part=place]') as HTMLInputElement).value) > 16)
    const place = await placeOf(page)
    await page.click('[data-part=slower]')
    await page.waitForFunction((from) => Number((document.querySelector('[data-part=place]') as HTMLInputElement).value) > from, place + 8)
    await page.click('[data-part=play]')
    await page.waitForFunction(() => location.hash.includes('.4.4.4.'))
    await settled(page)
    const after = columnsIn(page)
    const from = after.findIndex((workers, k) => workers !== before[k])
    expect(from).toBeGreaterThan(1)
    expect(after.slice(from)).toEqual(before.slice(from).map((workers) => Math.ceil(workers / 2)))
    expect(await page.inputValue('[data-part=example]')).toBe('')
  })

  test('another governor, beside another fixed limit', async () => {
    const page = await playground('scene=knee')
    const seen = await picture(page)
    await page.selectOption('[data-part=governor]', 'aimd')
    await sentenceHas(page, 'aimd reaches')
    await page.fill('[data-number=fixed]', '5')
    await sentenceHas(page, 'The fixed limit of 5: ')
    expect(await page.textContent('[data-side=fixed] .above')).toMatch(/^\d\d\s%$/)
    expect(await page.textContent('[data-part=code]')).toContain("import { govern, aimd } from 'sluice/load'")
    await settled(page)
    expect(await picture(page)).not.toBe(seen)
    const [download] = await Promise.all([page.waitForEvent('download'), page.click('[data-export=svg]')])
    expect(download.suggestedFilename()).toBe('sluice-knee.svg')
    expect(readFileSync(await download.path(), 'utf8')).toContain('fixed, 5')
  })
})

test.each([
  ['slow', 'dark'],
  ['knee', 'light'],
] as const)('%s is for everybody: in Chinese, on a phone, %s', async (scene, colorScheme) => {
  const page = await playground(`scene=${scene}`, { locale: 'zh-CN', colorScheme, viewport: { width: 360, height: 780 } })
  expect(await page.textContent('h1')).toBe(zh.scenes[scene].heading)
  await page.click('summary')
  expect(await page.$eval(':root', (root) => root.scrollWidth)).toBe(360)
  await expectNoSeriousIssue(page)
})

test('opened as a file a scene plays too', async () => {
  const { page } = await pages.open(`${new URL('../dist/index.html', import.meta.url).href}#playground?scene=slow`)
  await settled(page)
  expect(await page.textContent('[data-side=rate] .above')).toBe('333 of 10')
  expect(page.workers()).toEqual([])
})
