/**
 * The page from static files, in a Chromium, for the tests of one file. The page that a test opened
 * last must have logged no error.
 */
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll } from 'vitest'
import { expectNoTrouble, launchBrowser, type Opened, openPage, settled } from './chromium.ts'
import { type StaticServer, serveStatic } from './static-server.ts'

export class StaticPages {
  #browser!: Browser
  #server!: StaticServer
  /** The page that was opened last. */
  opened!: Opened

  constructor() {
    beforeAll(async () => {
      ;[this.#browser, this.#server] = await Promise.all([launchBrowser(), serveStatic()])
    })
    afterAll(async () => {
      this.#server.close()
      await this.#browser.close()
    })
    afterEach(async () => {
      expectNoTrouble(this.opened)
      await this.close()
    })
  }

  get url(): string {
    return this.#server.url
  }

  async open(url: string, options: BrowserContextOptions = {}): Promise<Opened> {
    this.opened = await openPage(this.#browser, url, options)
    return this.opened
  }

  /** The playground, with an address as it is shared, when it shows what it has to show. */
  async playground(address = '', options: BrowserContextOptions = {}): Promise<Page> {
    const { page } = await this.open(`${this.url}${address === '' ? '' : `#playground?${address}`}`, options)
    await settled(page)
    return page
  }

  async close(): Promise<void> {
    await this.opened.page.context().close()
  }
}
