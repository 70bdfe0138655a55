/** Live and Try in a real Chromium, served by the real service as a process of its own. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { expectNoSeriousIssue } from './support/axe.ts'
import { expectNoTrouble, launchBrowser, type Opened, openPage } from './support/chromium.ts'
import { decide, type RunningService, startService } from './support/service.ts'

let browser: Browser
let service: RunningService
let opened: Opened

beforeAll(async () => {
  ;[browser, service] = await Promise.all([launchBrowser(), startService(0, '--top-refused', '5')])
})
afterAll(async () => {
  await browser.close()
  await service.stop()
})
afterEach(async () => {
  expectNoTrouble(opened)
  await opened.page.context().close()
})

async function tab(name: string, options = {}): Promise<Page> {
  opened = await openPage(browser, `${service.url}#${name}`, options)
  return opened.page
}

/** Asks without a break until it is told to stop. */
function load(url: string): { stop(): Promise<void> } {
  let isOn = true
  const asking = (async () => {
    for (let k = 0; isOn; k++)
      await Promise.all([decide(url, { limiter: 'api', key: 'busy' }), decide(url, { limiter: 'llm', key: `team:${k}` })])
  })()
  return {
    async stop() {
      isOn = false
      await asking
    },
  }
}

const cell = (limiter: string, column: number) => `[data-limiter="${limiter}"] td:nth-of-type(${column})`
const isAbove = (page: Page, selector: string, least: number) =>
  page.waitForFunction(([at, than]) => Number(document.querySelector(at as string)?.textContent?.replace(/\D/g, '')) > Number(than), [
    selector,
    least,
  ] as const)

test('the service serves the page, with a content-security-policy that it keeps', async () => {
  const page = await tab('playground')
  await page.waitForSelector('[data-row=gcra]')
  const response = await fetch(service.url)
  expect(response.headers.get('content-security-policy')).toContain("default-src 'none'; script-src 'self'")
  expect(page.workers()).toHaveLength(1)
})

describe('Live', () => {
  test('counters move under real load, for all and for one limiter, and refused keys are named', async () => {
    const page = await tab('live')
    const busy = load(service.url)
    await isAbove(page, cell('api', 2), 0)
    await isAbove(page, cell('llm', 1), 0)
    await isAbove(page, '[data-figure=admitted] .value', 0)
    await page.waitForSelector('[data-part=top] th:has-text("busy")')
    await page.click('[data-choose=api]')
    expect(await page.textContent('h2')).toBe('api')
    await page.hover('.chart canvas', { force: true, position: { x: 900, y: 60 } })
    await page.waitForSelector('[data-part=pointed]:has-text("▲ Admitted/s")')
    await busy.stop()
    await page.waitForFunction(() => document.querySelector('[data-figure=refused] .value')?.textContent === '0')
    expect(await page.textContent('[data-limiter=api] .health')).toBe('up')
    await expectNoSeriousIssue(page)
  })

  test('waits are shown', async () => {
    const page = await tab('live')
    await page.waitForSelector('[data-limiter=queue]')
    // A fifth of a second each: there is time to see it, and a caller that still waits then goes.
    const body = JSON.stringify({ limiter: 'queue', key: 'k', cost: 10 })
    const leaving = new AbortController()
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body, signal: leaving.signal }
    const waits = Array.from({ length: 100 }, () => fetch(`${service.url}v1/acquire`, init).catch(() => undefined))
    await isAbove(page, cell('queue', 4), 0)
    await page.waitForSelector('[data-limiter=queue] td:has-text(" ms")')
    leaving.abort()
    await Promise.all(waits)
  })

  test('it comes back by itself when the service does', async () => {
    const own = await startService()
    opened = await openPage(browser, `${own.url}#live`)
    const { page, troubles } = opened
    await page.waitForSelector('[data-state=live]')
    expect(await page.textContent('[data-part=top]')).toContain('--top-refused')
    await own.stop()
    await page.waitForSelector('[data-state=reconnecting]')
    // What is seen is old, and says so.
    expect(await page.textContent('[data-part=state]')).toMatch(/^The service does not answer. Last seen \d\d:\d\d:\d\d/)
    expect(await page.locator('[data-part=watched].stale').count()).toBe(1)
    await page.click('[data-tab=try]')
    await page.waitForSelector('[data-part=notice]:has-text("The service does not answer")')
    await page.click('[data-tab=live]')
    // Nor does another language make it forget that there was a service.
    await page.click('[data-language=zh]')
    await page.waitForSelector('[data-state=reconnecting]')
    expect(await page.isVisible('[data-limiter=api]')).toBe(true)
    await page.click('[data-language=en]')
    await page.click('[data-tab=try]')
    await page.waitForSelector('[data-part=notice]:has-text("The service does not answer")')
    const again = await startService(own.port)
    await page.waitForSelector('[data-part=notice]', { state: 'hidden' })
    await page.click('[data-tab=live]')
    await page.waitForSelector('[data-state=live]')
    expect(await page.locator('[data-part=watched].stale').count()).toBe(0)
    await page.waitForSelector('[data-part=since]:has-text("restarted")')
    await decide(again.url, { limiter: 'api', key: 'k' })
    await page.waitForFunction(() => document.querySelector('[data-limiter=api] td:last-child')?.textContent === '1')
    await again.stop()
    // The browser itself says that nobody answered for a while.
    expect(troubles.filter((trouble) => !/Failed to load resource|net::/.test(trouble))).toEqual([])
    troubles.length = 0
  })

  test('a service that nobody has asked yet can be sent sample traffic', async () => {
    const own = await startService()
    opened = await openPage(browser, `${own.url}#live`)
    const { page } = opened
    await page.waitForSelector('[data-part=no-calls]:has-text("No calls yet")')
    await page.click('[data-part=sample]')
    await isAbove(page, '[data-figure=admitted] .value', 0)
    await isAbove(page, '[data-figure=refused] .value', 0)
    await page.click('[data-part=sample]:has-text("Stop")')
    await page.waitForSelector('[data-part=no-calls]', { state: 'hidden' })
    await own.stop()
    opened.troubles.length = 0
  })

  test('rules of a domain are called what the configuration calls them', async () => {
    const page = await tab('live')
    await page.click('text="edge: remote_address"')
    expect(await page.textContent('h2')).toBe('edge: remote_address')
  })

  test('the next event leaves scroll position, focus and text being read alone', async () => {
    const page = await tab('live', { viewport: { width: 660, height: 800 } })
    await page.waitForSelector('[data-limiter=api]')
    await page.$eval('[data-part=limiters] .scroll', (region) => {
      region.scrollLeft = 60
      ;(region as HTMLElement).focus()
    })
    const [row, status] = await Promise.all([page.$('[data-limiter=api]'), page.$('[data-part=state]')])
    const text = await status?.evaluateHandle((element) => element.firstChild)
    await page.waitForFunction((before) => !before?.isConnected, row)
    const left = await page.$eval('[data-part=limiters] .scroll', (region) => [region.scrollLeft, region === document.activeElement])
    expect(left).toEqual([60, true])
    expect(await text?.evaluate((node) => node?.isConnected)).toBe(true)
  })

  test('dark, in Chinese, on a phone', async () => {
    const page = await tab('live', { viewport: { width: 390, height: 800 }, colorScheme: 'dark', locale: 'zh-CN' })
    await page.waitForSelector('[data-limiter=api]')
    expect(await page.textContent('[data-part=state]')).toBe('实时')
    const width = () => page.$eval(':root', (root) => root.scrollWidth)
    expect(await width()).toBe(390)
    await expectNoSeriousIssue(page)
    await page.click('[data-tab=try]')
    await page.click('[data-part=send]')
    await page.waitForSelector('[data-part=status]')
    expect(await width()).toBe(390)
    await page.click('[data-tab=live]')
    await page.waitForSelector('[data-state=live]')
  })
})

describe('Try', () => {
  const body = async (page: Page) => JSON.parse((await page.textContent('[data-part=body]')) ?? '')

  async function send(page: Page): Promise<void> {
    await page.click('[data-part=send]')
    await page.waitForSelector('[data-part=status]')
  }

  test('shows request, answer and headers', async () => {
    const page = await tab('try')
    await page.waitForSelector('[data-ask=limiter] option[value=llm]', { state: 'attached' })
    await page.fill('[data-ask=key]', 'first')
    await page.fill('[data-ask=cost]', '2')
    expect(await page.textContent('[data-part=request]')).toContain('POST /v1/decide HTTP/1.1\ncontent-type: application/json')
    await send(page)
    expect(await page.textContent('[data-part=status]')).toContain('200 OK')
    expect(await body(page)).toMatchObject({ limiter: 'api', allowed: true, limit: 5, remaining: 3 })
    expect(await page.textContent('[data-part=headers]')).toContain('content-type: application/json')
    await expectNoSeriousIssue(page)
  })

  test('several in a row are counted', async () => {
    const page = await tab('try', { colorScheme: 'dark' })
    await page.fill('[data-ask=key]', 'series')
    await page.fill('[data-ask=times]', '8')
    await send(page)
    expect(await page.textContent('[data-part=series]')).toBe('8 sent: 5 admitted, 3 refused')
    expect(await body(page)).toMatchObject({ allowed: false, outcome: 'limited' })
    await expectNoSeriousIssue(page)
  })

  test('every verb gets its answer', async () => {
    const page = await tab('try')
    await page.waitForSelector('[data-ask=limiter] option[value=llm]', { state: 'attached' })
    await page.selectOption('[data-ask=limiter]', 'llm')
    await page.fill('[data-ask=key]', 'verbs')
    await page.fill('[data-ask=cost]', '{ "requests": 1, "tokens": 400 }')
    for (const [verb, expected] of [
      ['consume', { parts: { tokens: { remaining: 600 } } }],
      ['peek', { parts: { tokens: { remaining: 600 } } }],
      ['reserve', { parts: { tokens: { remaining: 200 } } }],
      ['refund', { refunded: true }],
      ['charge', { parts: { tokens: { remaining: 200 } } }],
      ['refund', { refunded: true }],
      ['acquire', { waitedMs: expect.any(Number) }],
    ] as const) {
      await page.selectOption('[data-ask=verb]', verb)
      await send(page)
      expect(await body(page), verb).toMatchObject(expected)
    }
    // The decision of `acquire` is filled in: of 400 tokens 150 were used.
    await page.selectOption('[data-ask=verb]', 'settle')
    await page.fill('[data-ask=actual]', '{ "requests": 1, "tokens": 150 }')
    await send(page)
    expect(await body(page)).toEqual({ limiter: 'llm', settled: true })
    await page.fill('[data-ask=cost]', '1')
    await page.selectOption('[data-ask=verb]', 'look')
    await send(page)
    expect(await body(page)).toMatchObject({ parts: { tokens: { remaining: 450 } } })
    await page.selectOption('[data-ask=verb]', 'reset')
    await send(page)
    expect(await page.textContent('[data-part=status]')).toContain('204')
    await page.selectOption('[data-ask=verb]', 'look')
    await send(page)
    expect(await body(page)).toMatchObject({ parts: { tokens: { remaining: 1000 } } })
  })

  test('a rule of a domain is asked as Envoy would, and its refusal is one', async () => {
    const page = await tab('try')
    await page.waitForSelector('[data-ask=verb] option[value=rule]', { state: 'attached' })
    await page.selectOption('[data-ask=verb]', 'rule')
    expect(await page.inputValue('[data-ask=entries]')).toBe('remote_address=example')
    await page.fill('[data-ask=entries]', 'remote_address=203.0.113.7')
    await page.fill('[data-ask=cost]', '100')
    await send(page)
    expect(await body(page)).toMatchObject({ overallCode: 'OK' })
    // Some may have come back by then, and not a hundred.
    await page.click('[data-part=send]')
    await page.waitForSelector('[data-part=status] .refused')
    expect(await page.textContent('[data-part=status]')).toContain('429')
    expect(await page.textContent('[data-part=history] tbody tr:first-child td')).toBe('remote_address=203.0.113.7')
    await page.fill('[data-ask=entries]', 'remote_address')
    await page.waitForSelector('[data-ask=entries][aria-invalid=true]')
    await expectNoSeriousIssue(page)
    // The browser tells of the refusal.
    opened.troubles.splice(0)
  })

  test('a refusal of the service is shown in its own words', async () => {
    const page = await tab('try')
    await page.fill('[data-ask=cost]', '1.5')
    await send(page)
    expect(await page.textContent('[data-part=status]')).toContain('400')
    expect(await body(page)).toMatchObject({ code: 'COST', detail: expect.stringContaining('1.5') })
    // Not counted as refused: the limiter was never asked.
    await page.fill('[data-ask=times]', '3')
    await page.fill('[data-ask=cost]', '2.5')
    await page.click('[data-part=send]')
    await page.waitForSelector('[data-part=body]:has-text("2.5")')
    expect(await page.$('[data-part=series]')).toBeNull()
    await page.fill('[data-ask=times]', '1')
    await page.selectOption('[data-ask=verb]', 'reserve')
    await page.fill('[data-ask=cost]', '1')
    await page.fill('[data-ask=maxWaitMs]', 'soon')
    await page.click('[data-part=send]')
    await page.waitForSelector('[data-part=body]:has-text("soon")')
    await page.selectOption('[data-ask=verb]', 'look')
    await page.fill('[data-ask=cost]', '{ "tokens": 3 }')
    await page.click('[data-part=send]')
    await page.waitForSelector('[data-part=body]:has-text("tokens")')
    await page.fill('[data-ask=cost]', 'much')
    expect(await page.textContent('.error')).toBe('Cost much: must be a whole number, or an object of them.')
    expect(await page.getAttribute('[data-ask=cost]', 'aria-invalid')).toBe('true')
    // What was sent before is still there, the newest first.
    const answers = await page.$$eval('[data-part=history] tbody tr', (rows) => rows.map((row) => row.textContent))
    expect(answers.length).toBeGreaterThanOrEqual(4)
    expect(answers[1]).toContain('reserve user:42')
    opened.troubles.length = 0
  })

  test('a person who types goes on where they were when the limiters become known', async () => {
    let answer = () => {}
    const isTyped = new Promise<void>((resolve) => {
      answer = resolve
    })
    const page = await tab('playground')
    await page.route('**/v1/limiters', (route) => isTyped.then(() => route.continue()))
    await page.click('[data-tab=try]')
    await page.focus('[data-ask=key]')
    await page.keyboard.press('Control+A')
    await page.keyboard.type('it')
    await page.keyboard.press('ArrowLeft')
    answer()
    await page.waitForSelector('[data-ask=limiter] option:nth-child(3)', { state: 'attached' })
    await page.keyboard.type('n')
    expect(await page.inputValue('[data-ask=key]')).toBe('int')
  })

  test('typed text is still there in another language', async () => {
    const page = await tab('try')
    await page.waitForSelector('[data-ask=limiter] option:nth-child(3)', { state: 'attached' })
    await page.fill('[data-ask=key]', 'user:7')
    await page.fill('[data-ask=token]', 'a-token')
    await page.click('[data-language=zh]')
    expect(await page.inputValue('[data-ask=key]')).toBe('user:7')
    expect(await page.inputValue('[data-ask=token]')).toBe('a-token')
  })

  test('the code that it shows does the same when it is run, and a shell reads curl as it is meant', async () => {
    const page = await tab('try')
    const key = `it's "odd" $HOME \\ ✓`
    await page.fill('[data-ask=key]', key)
    const code = (await page.textContent('[data-part=typescript]')) as string
    const said: unknown[] = []
    const run = Object.getPrototypeOf(async () => undefined).constructor('console', code) as (console: object) => Promise<void>
    await run({ log: (...words: unknown[]) => said.push(...words) })
    expect(said).toMatchObject([200, { limiter: 'api', remaining: 4 }])
    const curl = (await page.textContent('[data-part=curl]')) as string
    const words = spawnSync('sh', ['-c', `curl() { for word; do printf '%s\\n' "$word"; done; }\n${curl}`], {
      encoding: 'utf8',
    }).stdout.split('\n')
    expect(words.slice(0, -1)).toEqual([
      '-i',
      '-H',
      'content-type: application/json',
      '-d',
      JSON.stringify({ limiter: 'api', key }),
      `${service.url}v1/decide`,
    ])
  })
})

test('where reading needs a token, Live asks for it, and Try knows it then', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-tokens-'))
  const [writes, reads] = [join(folder, 'writes'), join(folder, 'reads')]
  writeFileSync(writes, 'a-token-that-may-write')
  writeFileSync(reads, 'a-token-that-may-only-read')
  const guarded = await startService(0, '--tokens-file', writes, '--read-tokens-file', reads)
  try {
    opened = await openPage(browser, `${guarded.url}#live`)
    const { page } = opened
    await page.waitForSelector('[data-part=locked]:not([hidden])')
    await expectNoSeriousIssue(page)
    await page.fill('[data-part=token]', 'a-token-that-is-wrong')
    await page.keyboard.press('Enter')
    await page.waitForSelector('[data-part=locked] .error:has-text("does not accept")')
    await page.fill('[data-part=token]', 'a-token-that-may-only-read')
    await page.keyboard.press('Enter')
    await page.waitForSelector('[data-limiter=api]')
    await page.click('a[href="#try"]')
    await page.waitForSelector('[data-ask=limiter] option[value=llm]', { state: 'attached' })
    await page.click('[data-part=send]')
    await page.waitForSelector('[data-part=status]')
    expect(await page.textContent('[data-part=body]')).toContain('this token may only read')
    await page.fill('[data-ask=token]', 'a-token-that-may-write')
    await page.click('[data-part=send]')
    await page.waitForSelector('[data-part=status] .admitted')
    // The browser tells of each refusal.
    expect(opened.troubles.splice(0).filter((text) => !/401|403/.test(text))).toEqual([])
  } finally {
    await guarded.stop()
    rmSync(folder, { recursive: true })
  }
})
