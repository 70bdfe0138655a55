/**
 * For a service that nobody has asked yet: a button that sends it a minute of traffic, so that
 * there is something to see.
 */
import { h, put } from '../dom.ts'
import { plain } from '../numbers.ts'
import type { Texts } from '../text/en.ts'
import { authorization } from '../token.ts'
import type { LiveLimiter } from './history.ts'

const LENGTH_MS = 60_000
const EVERY_MS = 100
/** The first keys stay below most limits, the last is in a hurry. */
const CALLS = ['sample:ann', 'sample:bob', 'sample:eve', 'sample:eve', 'sample:eve'] as const

export class SampleTraffic {
  readonly element: HTMLElement
  readonly #texts: Texts
  readonly #said = h('p', { class: 'note', role: 'status' })
  readonly #words = h('p')
  readonly #button: HTMLButtonElement
  #limiter: string | undefined
  #timer: ReturnType<typeof setInterval> | undefined
  #endsMs = 0
  #hasCalls = false

  constructor(texts: Texts) {
    this.#texts = texts
    this.#button = h(
      'button',
      { type: 'button', class: 'primary', 'data-part': 'sample', onclick: () => this.#toggle() },
      texts.live.sample,
    )
    put(this.#words, texts.live.noCalls, ' ', h('a', { href: '#try' }, texts.tabs.try))
    this.element = h('section', { class: 'panel stack', 'data-part': 'no-calls', hidden: true }, this.#words, this.#button, this.#said)
  }

  /** Offered as long as no call was counted, and while it sends. */
  show(limiters: readonly LiveLimiter[]): void {
    // A rule of a domain is asked by descriptors, not by a key.
    this.#limiter = limiters.find(({ rule }) => rule === null)?.name
    this.#hasCalls = limiters.some(({ allowed, denied }) => allowed + denied > 0)
    this.#words.hidden = this.#hasCalls
    this.element.hidden = this.#limiter === undefined || (this.#hasCalls && this.#timer === undefined)
  }

  close(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #toggle(): void {
    if (this.#timer !== undefined) {
      this.#stop()
      return
    }
    this.#endsMs = performance.now() + LENGTH_MS
    put(this.#button, this.#texts.live.sampleStop)
    this.#timer = setInterval(() => this.#send(), EVERY_MS)
  }

  #stop(said = ''): void {
    this.close()
    put(this.#button, this.#texts.live.sample)
    put(this.#said, said)
    this.element.hidden = this.#hasCalls && said === ''
  }

  #send(): void {
    const leftMs = this.#endsMs - performance.now()
    if (leftMs <= 0 || this.#limiter === undefined) {
      this.#stop()
      return
    }
    put(this.#said, this.#texts.live.sampleLeft(plain(Math.ceil(leftMs / 1000))))
    for (const key of CALLS) void this.#ask(this.#limiter, key)
  }

  async #ask(limiter: string, key: string): Promise<void> {
    const body = JSON.stringify({ limiter, key })
    try {
      const response = await fetch('v1/decide', {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...authorization() },
        body,
      })
      await response.arrayBuffer()
      if (!response.ok && response.status !== 429) throw new Error(`${response.status} ${response.statusText}`)
    } catch (error) {
      if (this.#timer !== undefined) this.#stop(this.#texts.live.sampleFailed(error instanceof Error ? error.message : String(error)))
    }
  }
}
