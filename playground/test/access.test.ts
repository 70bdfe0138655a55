/**
 * The playground for everybody: in both languages and themes, by keyboard and by ear, on a phone.
 * In a real Chromium.
 */
import { expect, test } from 'vitest'
import { zh } from '../src/text/zh.ts'
import { expectNoSeriousIssue } from './support/axe.ts'
import { atCall, picture, settled } from './support/chromium.ts'
import { StaticPages } from './support/static-pages.ts'

const pages = new StaticPages()
const playground = pages.playground.bind(pages)

test('Chinese is remembered, and changes all that is said', async () => {
  const page = await playground()
  await page.click('[data-language=zh]')
  await settled(page)
  expect(await page.getAttribute('html', 'lang')).toBe('zh-CN')
  expect(await page.textContent('h1')).toBe(zh.intro.heading)
  await page.waitForFunction(() => document.querySelector('.words')?.textContent?.includes('个令牌'))
  await page.reload()
  await settled(page)
  expect(await page.title()).toBe(zh.title)
  expect(await page.$eval(':root', (root) => root.scrollWidth <= innerWidth)).toBe(true)
})

test('a browser that speaks Chinese is spoken to in Chinese', async () => {
  const page = await playground('', { locale: 'zh-CN' })
  expect(await page.textContent('h1')).toBe(zh.intro.heading)
})

test('the theme follows the system until it is chosen, and the picture follows the theme', async () => {
  const page = await playground()
  const ground = () => page.$eval('body', () => getComputedStyle(document.documentElement).backgroundColor)
  const [light, drawn] = [await ground(), await picture(page)]
  await page.emulateMedia({ colorScheme: 'dark' })
  const dark = await ground()
  expect(dark).not.toBe(light)
  await expect.poll(() => picture(page), { timeout: 60_000 }).not.toBe(drawn)
  await page.selectOption('[data-part=theme]', 'light')
  expect(await ground()).toBe(light)
  expect(await picture(page)).toBe(drawn)
  await page.reload()
  await settled(page)
  expect(await ground()).toBe(light)
})

test('the keyboard alone is enough', async () => {
  const page = await playground()
  const focused = () =>
    page.$eval(':focus', (element) => element.textContent?.trim() || element.getAttribute('aria-label') || element.tagName)
  await page.keyboard.press('Tab')
  expect(await focused()).toBe('Skip to the content')
  await page.keyboard.press('Enter')
  await page.keyboard.press('Tab')
  await page.keyboard.press('ArrowDown')
  await page.waitForFunction(() => location.hash.includes('traffic=flash'))
  await settled(page)
  for (let k = 0; k < 40 && !(await focused()).startsWith('Step'); k++) await page.keyboard.press('Tab')
  const call = Number(await page.inputValue('[data-part=place]'))
  await page.keyboard.press('Enter')
  await atCall(page, call + 1)
})

test('a tab that is chosen with the keyboard has the focus', async () => {
  const page = await playground()
  await page.focus('[data-tab=try]')
  await page.keyboard.press('Enter')
  await page.waitForSelector('[data-tab=try][aria-current=page]')
  expect(await page.$eval(':focus', (element) => element.textContent)).toBe('Try')
  // Without a service the browser says that nobody answered.
  await page.waitForSelector('text=no service to ask')
  pages.opened.troubles.length = 0
})

test('while playing, nothing is read out', async () => {
  const page = await playground()
  await page.click('[data-part=play]')
  await page.waitForSelector('.words[aria-live=off]')
  expect(await page.$$eval('.said', (all) => all.map((said) => said.getAttribute('aria-live')))).toEqual(['off'])
})

test.each(['light', 'dark'] as const)('axe finds nothing serious (%s)', async (colorScheme) => {
  const page = await playground('traffic=drawn', { colorScheme })
  await page.click('summary:has-text("GCRA")')
  await expectNoSeriousIssue(page)
  await page.selectOption('[data-part=example]', 'gcra-walkthrough')
  await page.waitForSelector('[data-tape]')
  await expectNoSeriousIssue(page)
})

test.each([360, 768, 1024])('at %i pixels nothing has to be scrolled sideways, and the slider can be held', async (width) => {
  const page = await playground('traffic=drawn', { viewport: { width, height: 780 } })
  await page.$$eval('details', (all) => {
    for (const each of all) each.open = true
  })
  expect(await page.$eval(':root', (root) => root.scrollWidth)).toBe(width)
  expect((await page.locator('[data-part=place]').boundingBox())?.width).toBeGreaterThan(100)
  await page.selectOption('[data-part=example]', 'gcra-walkthrough')
  await page.waitForSelector('[data-tape]')
  expect(await page.$eval(':root', (root) => root.scrollWidth)).toBe(width)
})
