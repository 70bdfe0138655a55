/** A real Chromium, and pages in it that remember everything that went wrong. */
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { expect } from 'vitest'
import { launchBrowser } from '../../scripts/browser.mjs'

export { launchBrowser }

export interface Opened {
  readonly page: Page
  /** Errors in the console, exceptions, and requests to anybody but the page's own host. */
  readonly troubles: string[]
}

export async function openPage(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Opened> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: 'en-US', colorScheme: 'light', ...options })
  // A busy machine is slow, not wrong.
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  const troubles: string[] = []
  const { host } = new URL(url)
  page.on('console', (message) => {
    if (message.type() === 'error') troubles.push(`console: ${message.text()}`)
  })
  page.on('pageerror', (error) => troubles.push(`exception: ${error.message}`))
  page.on('request', (request) => {
    const { protocol, host: asked } = new URL(request.url())
    if (protocol !== 'blob:' && protocol !== 'data:' && asked !== host) troubles.push(`asked ${request.url()}`)
  })
  await page.goto(url)
  return { page, troubles }
}

/** When the worker has answered, and what it said is on the screen. */
export async function settled(page: Page): Promise<void> {
  await page.waitForSelector('.playground[aria-busy=false]')
}

export function expectNoTrouble({ troubles }: Opened): void {
  expect(troubles).toEqual([])
}

/** When the words are about a call. */
export const atCall = (page: Page, call: number) => page.waitForSelector(`.words[data-call="${call}"]`)

/** What the picture shows, as a number that differs when it does. */
export const picture = (page: Page) =>
  page.$eval('[data-part=picture]', (canvas) => {
    const { width, height } = canvas as HTMLCanvasElement
    const context = (canvas as HTMLCanvasElement).getContext('2d') as CanvasRenderingContext2D
    const { data } = context.getImageData(0, 0, width, height)
    return data.reduce((sum, value, k) => (sum * 31 + value * (k % 7)) % 1_000_003, 7)
  })
