/** The playground in a real Chromium, from static files: no service is behind it. */
import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { fromAddress } from '../src/playground/state.ts'
import { TAPES } from '../src/simulation/tapes.ts'
import type { Traffic } from '../src/simulation/traffic.ts'
import type { Tape } from '../src/sluice.ts'
import { expectNoSeriousIssue } from './support/axe.ts'
import { atCall, picture, settled } from './support/chromium.ts'
import { StaticPages } from './support/static-pages.ts'

const pages = new StaticPages()
const playground = pages.playground.bind(pages)

const totalsOf = (page: Page) =>
  page.$$eval('[data-row]', (rows) =>
    Object.fromEntries(rows.map((row) => [row.getAttribute('data-row'), [...row.querySelectorAll('td')].map((cell) => cell.textContent)])),
  )
/** It follows what is shown, a little later. */
const addressHas = (page: Page, text: string) => page.waitForFunction((part) => location.hash.includes(part), text)
const words = (page: Page) => page.textContent('.words')

async function boxOf(page: Page, selector: string): Promise<{ x: number; y: number; width: number; height: number }> {
  const box = await page.locator(selector).boundingBox()
  if (box === null) throw new Error(`${selector} is not to be seen`)
  return box
}

describe('at first', () => {
  test('six algorithms are seen at the boundary, and a worker computes them', async () => {
    const page = await playground('traffic=boundary&count=10&after=0')
    expect(await totalsOf(page)).toEqual({
      fixedWindow: ['20 of 10 in 1 s', '20', '0', '–'],
      slidingWindow: ['10 of 10 in 1 s', '10', '10', '900 ms'],
      slidingLog: ['10 of 10 in 1 s', '10', '10', '980 ms'],
      tokenBucket: ['10 of 10 in 1 s', '10', '10', '80 ms'],
      gcra: ['10 of 10 in 1 s', '10', '10', '80 ms'],
      leakyBucket: ['10 of 10 in 1 s', '10', '10', '900 ms'],
    })
    expect(await page.getAttribute('[data-part=picture]', 'aria-label')).toContain('Fixed window: 20 admitted, 0 refused')
    expect(page.workers()).toHaveLength(1)
  })

  test('the first call that an algorithm refuses is explained', async () => {
    const page = await playground()
    await atCall(page, 11)
    expect(await words(page)).toContain('0 tokens + 0.02 s × 10/s = 0.2; needs 1, 0.8 missing: enough in 0.08 s')
  })
})

test('every worked example shows the numbers of its table', async () => {
  const page = await playground()
  for (const tape of Object.values(TAPES).flat()) {
    await page.selectOption('[data-part=example]', tape.id)
    await page.waitForSelector(`[data-tape=${tape.id}]`)
    expect(await tapeRows(page), tape.id).toEqual(tape.tape.map(statedRow))
    const [[, admitted, refused]] = Object.values(await totalsOf(page)) as [string[]]
    if (tape.tape.every(({ outcome }) => outcome !== undefined)) {
      expect([Number(admitted), Number(refused)], tape.id).toEqual([
        calls(tape, 'allowed'),
        calls(tape, 'limited') + calls(tape, 'impossible'),
      ])
    }
    await addressHas(page, `traffic=tape&id=${tape.id}`)
  }
})

const tapeRows = (page: Page) =>
  page.$$eval('[data-tape] tbody tr', (all) => all.map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent)))

const calls = ({ tape }: Tape, outcome: string) =>
  tape.filter((row) => row.outcome === outcome).reduce((sum, { repeat = 1 }) => sum + repeat, 0)

const OUTCOMES: Readonly<Record<string, string>> = { allowed: 'admitted', limited: 'refused', impossible: 'never fits' }

/** The row of a table as the page must show it; what the table does not state may be anything. */
function statedRow({ atMs, cost, repeat = 1, outcome, remaining, retryAfterMs, resetAfterMs, delayMs }: Tape['tape'][number]): unknown[] {
  const orAny = (stated: number | undefined, unit: string) => (stated === undefined ? expect.any(String) : `${stated}${unit}`)
  return [
    `${atMs} ms`,
    `${cost}`,
    `${repeat}`,
    outcome === undefined ? expect.any(String) : OUTCOMES[outcome],
    orAny(remaining, ''),
    orAny(retryAfterMs, ' ms'),
    orAny(resetAfterMs, ' ms'),
    orAny(delayMs, ' ms'),
    '✓ yes',
  ]
}

describe('drawing by hand', () => {
  test('with the mouse changes what is decided', async () => {
    const page = await playground('traffic=drawn&columns=0.0.1')
    expect((await totalsOf(page)).fixedWindow?.slice(1, 3)).toEqual(['1', '0'])
    const before = await picture(page)
    const { x, y, width, height } = await boxOf(page, '.board')
    // Not in the corner, which is round.
    await page.mouse.move(x + 4, y + height - 4)
    await page.mouse.down()
    await page.mouse.move(x + width - 1, y + 1, { steps: 20 })
    await page.mouse.up()
    await page.waitForFunction(() => Number(document.querySelector('[data-row=fixedWindow] .refused')?.textContent) > 100)
    expect(await picture(page)).not.toBe(before)
    await page.waitForFunction(() => /\.(2[89]|30)$/.test(location.hash))
    const { traffic } = fromAddress(page.url().split('?')[1] as string)
    const { columns } = traffic as Traffic & { kind: 'drawn' }
    expect(columns).toEqual(columns.toSorted((a, b) => a - b))
    expect(columns[0]).toBeLessThan(2)
  })

  test('with the keyboard changes one column, and the arrows go on to the next', async () => {
    const page = await playground('traffic=drawn&columns=0')
    await page.focus('.board [tabindex="0"]')
    for (const key of ['ArrowRight', 'ArrowUp', 'ArrowUp', 'ArrowUp', 'ArrowDown']) await page.keyboard.press(key)
    await page.waitForFunction(() => document.querySelector('[data-row=gcra] .admitted')?.textContent === '2')
    await addressHas(page, 'columns=0.2.0.')
    // What was drawn stays when the length changes, and it is no example any more.
    await page.fill('[data-number=seconds]', '8')
    await page.waitForFunction(() => location.hash.includes('seconds=8'))
    await addressHas(page, 'columns=0.2.0.')
    expect(await page.inputValue('[data-part=example]')).toBe('')
    await page.focus('.board [tabindex="0"]')
    expect(await page.$eval(':focus', (column) => column.getAttribute('aria-valuenow'))).toBe('2')
  })
})

describe('the sentence over the picture', () => {
  const sentence = (page: Page) => page.textContent('[data-part=conclusion]')

  test('says what the scene shows, and the figure above its limit is marked', async () => {
    const page = await playground()
    expect(await sentence(page)).toBe(
      'Limit 10 a second. The fixed window let 20 through within 20 ms; the sliding log never more than 10.',
    )
    const marked = await page.$$eval('[data-row]', (rows) =>
      rows.filter((row) => row.querySelector('.above')).map((row) => row.getAttribute('data-row')),
    )
    expect(marked).toEqual(['fixedWindow', 'slidingWindow', 'tokenBucket', 'gcra'])
    await page.click('[data-show=fixedWindow]')
    await page.waitForFunction(() =>
      document.querySelector('[data-part=conclusion]')?.textContent?.includes('The token bucket let 19 through'),
    )
  })

  test('says so where nothing is refused, and where no limit is exceeded', async () => {
    const page = await playground('traffic=steady&perSecond=5&seconds=4')
    expect(await sentence(page)).toBe('Limit 10 a second. All 20 calls were admitted.')
    await page.goto(page.url().replace('perSecond=5', 'perSecond=5000').replace('seconds=4', 'seconds=1'))
    await page.selectOption('[data-part=example]', 'token-bucket-walkthrough')
    await page.waitForFunction(() => document.querySelector('[data-part=conclusion]')?.textContent?.startsWith('Limit 2 a second.'))
  })

  test('is told in Chinese, as are mistakes in a limit', async () => {
    const page = await playground('', { locale: 'zh-CN' })
    expect(await sentence(page)).toBe('限额：每秒 10 次。固定窗口在 20 ms 内放行了 20 次；滑动日志在任何窗口内都不超过 10 次。')
    await page.fill('[data-part=permits]', '-1')
    await page.waitForSelector('.common .error:has-text("许可数 -1：应为")')
    expect(await page.locator('[aria-invalid=true]').count()).toBe(1)
  })
})

describe('going through a run', () => {
  test('the arithmetic stands in the row that it is about, and the state can be hidden', async () => {
    const page = await playground()
    await atCall(page, 11)
    const rows = await page.$$eval('.words .row', (all) => all.map((row) => Math.round(row.getBoundingClientRect().top)))
    const { y, height } = await boxOf(page, '[data-part=picture]')
    expect(rows).toEqual([...rows].sort((a, b) => a - b))
    expect(Math.min(...rows)).toBeGreaterThan(y)
    expect(Math.max(...rows)).toBeLessThan(y + height)
    await page.uncheck('[data-part=state]')
    await page.waitForFunction((before) => (document.querySelector('[data-part=picture]')?.clientHeight ?? before) < before, height)
  })

  test('a step shows the arithmetic of one call, forwards and back', async () => {
    const page = await playground('traffic=tape&id=token-bucket-walkthrough')
    await atCall(page, 3)
    expect(await words(page)).toContain('0 tokens + 0 s × 1/s = 0; needs 1, 1 missing: enough in 1 s')
    await page.click('.bar [data-part=step]')
    await atCall(page, 4)
    expect(await words(page)).toContain('0 tokens + 1.4 s × 1/s = 1.4; needs 1, leaves 0.4')
    for (const call of [3, 2, 1]) {
      await page.click('[data-part=back]')
      await atCall(page, call)
    }
    expect(await words(page)).toContain('a full bucket, 2 tokens; needs 1, leaves 1')
  })

  test('play goes on by itself, pause stops it, and a click on the picture goes there', async () => {
    const page = await playground('traffic=steady&perSecond=50&seconds=20')
    expect(await page.inputValue('.bar select')).toBe('2')
    await page.selectOption('.bar select', '0.1')
    await atCall(page, 11)
    await page.click('[data-part=play]')
    // From the beginning, although call 11 was looked at before.
    await page.waitForFunction(() => Number(document.querySelector<HTMLElement>('.words')?.dataset.call) < 11)
    await page.waitForFunction(() => Number(document.querySelector<HTMLElement>('.words')?.dataset.call) > 3)
    await page.click('[data-part=play]')
    expect(await page.textContent('[data-part=play]')).toContain('Play')
    const place = Number(await page.inputValue('[data-part=place]'))
    await atCall(page, place)
    expect(place).toBeLessThan(1000)
    const { width } = await boxOf(page, '.over')
    await page.click('.over', { position: { x: width - 40, y: 60 } })
    await page.waitForFunction((from) => Number(document.querySelector<HTMLElement>('.words')?.dataset.call) > from, place + 500)
  })

  test('another run while one is played begins where it should, without an error', async () => {
    const page = await playground('traffic=steady&perSecond=1000&seconds=60')
    await page.selectOption('.bar select', '20')
    await page.click('[data-part=play]')
    await page.waitForFunction(() => Number((document.querySelector('[data-part=place]') as HTMLInputElement).value) > 1000)
    await page.selectOption('[data-part=example]', 'boundary')
    await page.waitForSelector('.playground[data-calls="59"][aria-busy=false]')
    await atCall(page, 11)
    // What is asked of the worker is answered in order: a step after the first look is answered
    // after whatever came before.
    await page.click('[data-part=step]')
    await atCall(page, 12)
    expect((await page.locator('.error').allTextContents()).join('')).toBe('')
  })

  test('while a run cannot be made, the one that is seen can be gone through', async () => {
    const page = await playground()
    await page.fill('[data-number=count]', '')
    await page.waitForSelector('.error:has-text("out of range")')
    await page.click('[data-part=step]')
    await atCall(page, 12)
    expect(await page.locator('.words dt').count()).toBe(6)
  })

  test('a run to its end stops there', async () => {
    const page = await playground('traffic=pasted&times=0+5+10')
    await page.selectOption('.bar select', '1')
    await page.click('[data-part=play]')
    await page.waitForFunction(() => document.querySelector('[data-part=play]')?.textContent?.includes('Play'))
    await atCall(page, 3)
  })
})

describe('limits', () => {
  test('one pair of numbers sets all six; each can have its own; a wrong one is told and changes nothing', async () => {
    const page = await playground('traffic=boundary&count=10&after=0')
    await page.fill('[data-part=permits]', '5')
    await page.waitForFunction(() => document.querySelector('[data-row=slidingLog] .admitted')?.textContent === '5')
    await addressHas(page, 'gcra=5,5/s')
    await page.click('summary:has-text("GCRA")')
    await page.fill('[data-option="gcra.burst"]', '7')
    await page.waitForFunction(() => document.querySelector('[data-row=gcra] .admitted')?.textContent === '7')
    await page.fill('[data-option="gcra.rate"]', 'fast')
    expect(await page.textContent('.limit:has([data-option="gcra.rate"]) .error')).toContain('Rate fast: must be a rate such as 10/s')
    expect((await totalsOf(page)).gcra?.[1]).toBe('7')
  })

  test('the common pair says what is set, whatever its unit, and a wrong one says why', async () => {
    const page = await playground('fixedWindow=10,1d')
    const common = page.locator('.common')
    expect(await common.locator('input, select').evaluateAll((all) => all.map((each) => (each as HTMLInputElement).value))).toEqual([
      '10',
      '1',
      'd',
    ])
    await page.fill('[data-part=permits]', '-1')
    expect(await common.locator('.error').textContent()).toContain('Permits -1: must be a whole number')
    await page.fill('[data-part=permits]', '3')
    expect(await common.locator('.error').textContent()).toBe('')
    await page.waitForFunction(() => location.hash.includes('gcra=3,3/d'))
  })

  test('rows can be left out', async () => {
    const page = await playground()
    for (const type of ['fixedWindow', 'slidingWindow', 'slidingLog', 'tokenBucket', 'leakyBucket'])
      await page.uncheck(`[data-show=${type}]`)
    await page.waitForFunction(() => document.querySelectorAll('[data-row]').length === 1)
    expect(Object.keys(await totalsOf(page))).toEqual(['gcra'])
    await page.click('[data-show=gcra]')
    expect(await page.isChecked('[data-show=gcra]')).toBe(true)
  })

  test('traffic that cannot be is told in words', async () => {
    const page = await playground('traffic=pasted&times=1')
    await page.fill('textarea', '1 2 three')
    await page.waitForSelector('.error:has-text("This is not a time that can be drawn: three")')
  })
})

describe('to take away', () => {
  test('the address leads to the same picture elsewhere', async () => {
    const page = await playground()
    await page.selectOption('[data-part=example]', 'crawler')
    await page.waitForFunction(() => location.hash.includes('crawler'))
    await settled(page)
    const [totals, seen] = [await totalsOf(page), await picture(page)]
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.click('text=Copy link')
    await page.waitForSelector('text=Copied')
    const link = await page.evaluate(() => navigator.clipboard.readText())
    await pages.close()
    const { page: shared } = await pages.open(link)
    await settled(shared)
    expect(await totalsOf(shared)).toEqual(totals)
    expect(await picture(shared)).toBe(seen)
  })

  test('the picture as SVG and as PNG', async () => {
    const page = await playground()
    const saved = async (kind: string) => {
      const [download] = await Promise.all([page.waitForEvent('download'), page.click(`[data-export=${kind}]`)])
      return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) }
    }
    const svg = await saved('svg')
    expect(svg.name).toBe('sluice-boundary.svg')
    // The picture in the README is an export of the page as it is.
    expect(svg.bytes.toString()).toBe(readFileSync(new URL('../../docs/pictures/boundary-burst.svg', import.meta.url), 'utf8'))
    const png = await saved('png')
    expect([...png.bytes.subarray(0, 4)]).toEqual([0x89, 0x50, 0x4e, 0x47])
    expect(png.bytes.readUInt32BE(16)).toBe(1920)
  })

  test('a browser that refuses the clipboard copies all the same', async () => {
    const page = await playground()
    const refuse = () => {
      navigator.clipboard.writeText = () => Promise.reject(new Error('refused'))
      addEventListener('copy', () => document.body.setAttribute('data-copied', String(getSelection())))
    }
    await page.evaluate(refuse)
    await page.click('text="Copy link"')
    await page.waitForSelector('text="Copied"')
    expect(await page.getAttribute('body', 'data-copied')).toContain('#playground?traffic=boundary')
  })

  test('the code of the chosen algorithm', async () => {
    const page = await playground('traffic=tape&id=leaky-bucket-lazy-leak')
    expect(await page.textContent('[data-part=code]')).toContain("createLimiter(leakyBucket({ capacity: 10, leak: '2/s' }))")
  })
})

test('opened as a file it shows and tells the same', async () => {
  const served = await totalsOf(await playground())
  await pages.close()
  const { page } = await pages.open(new URL('../dist/index.html', import.meta.url).href)
  await settled(page)
  expect(await totalsOf(page)).toEqual(served)
  expect(page.workers()).toEqual([])
  await page.click('[data-part=step]')
  await atCall(page, 12)
})

test('a hundred thousand calls are computed by the worker, and drawn as cells', async () => {
  const page = await playground()
  await page.selectOption('[data-part=example]', 'many')
  await page.waitForFunction(() => Number(document.querySelector<HTMLElement>('.playground')?.dataset.calls) > 99_000)
  expect(page.workers()).toHaveLength(1)
  const totals = await totalsOf(page)
  for (const [, admitted, refused] of Object.values(totals) as [string, string, string][]) {
    expect(Number(admitted.replace(',', '')) + Number(refused.replace(',', ''))).toBeGreaterThan(99_000)
  }
})

test('without a service, Live and Try say so kindly', async () => {
  const { page, troubles } = await pages.open(`${pages.url}#live`)
  await page.waitForSelector('text=npm start')
  expect(await page.textContent('[data-part=state]')).toBe('No service')
  await page.click('[data-tab=try]')
  await page.waitForSelector('text=there is no service to ask')
  expect(await page.textContent('[data-part=curl]')).toContain('/v1/decide')
  await expectNoSeriousIssue(page)
  // That nobody answered is all there is to say.
  expect(troubles.filter((trouble) => !trouble.includes('404'))).toEqual([])
  troubles.length = 0
})
