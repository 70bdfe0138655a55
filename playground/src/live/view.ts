/** Live: what the running service admits and refuses, every second. */
import { field, h, put } from '../dom.ts'
import { plain, rounded } from '../numbers.ts'
import type { View } from '../playground/view.ts'
import type { Texts } from '../text/en.ts'
import { tokenNow, useToken } from '../token.ts'
import { Chart } from './chart.ts'
import { Feed, type FeedState } from './feed.ts'
import { ALL, History, type LiveEvent } from './history.ts'
import { LimitersTable, labelOf } from './limiters-table.ts'
import { SampleTraffic } from './sample.ts'
import { TopKeys } from './top-keys.ts'

const START = 'npm start'

/** Kept while another tab is open, or another language is chosen. */
const history = new History()

export function liveView(texts: Texts): View {
  return new LiveView(texts)
}

class LiveView implements View {
  readonly element: HTMLElement
  readonly #texts: Texts
  readonly #chart: Chart
  readonly #limiters: LimitersTable
  readonly #top: TopKeys
  readonly #sample: SampleTraffic
  readonly #feed: Feed
  readonly #state = h('span', { class: 'state', role: 'status', 'data-part': 'state' })
  readonly #since = h('span', { class: 'note', 'data-part': 'since' })
  readonly #name = h('h2', {})
  readonly #figures = h('div', { class: 'figures' })
  readonly #none: HTMLElement
  readonly #locked: HTMLElement
  readonly #wrongToken = h('p', { class: 'error', role: 'alert' })
  readonly #watched: HTMLElement
  #chosen = ALL

  constructor(texts: Texts) {
    this.#texts = texts
    this.#chart = new Chart(texts)
    this.#limiters = new LimitersTable(texts, history, (limiter) => this.#choose(limiter))
    this.#top = new TopKeys(texts, history)
    this.#sample = new SampleTraffic(texts)
    this.#none = this.#noService()
    this.#locked = this.#tokenForm()
    this.#watched = h(
      'div',
      { class: 'stacked', 'data-part': 'watched' },
      this.#sample.element,
      h('section', { class: 'panel' }, this.#name, this.#figures, this.#chart.element),
      this.#limiters.element,
      this.#top.element,
    )
    const intro = h('div', { class: 'intro' }, h('h1', {}, texts.live.heading), h('p', { class: 'inline' }, this.#state, this.#since))
    this.element = h('div', { class: 'stacked' }, intro, this.#none, this.#locked, this.#watched)
    // The last known figures, until the service sends more.
    if (history.last !== undefined) this.#show(history.last)
    this.#feed = new Feed(
      {
        event: (event) => {
          history.add(event)
          this.#show(event)
        },
        state: (state) => this.#showState(state),
      },
      history.last !== undefined,
    )
  }

  repaint(): void {
    this.#chart.repaint()
  }

  close(): void {
    this.#feed.close()
    this.#sample.close()
    this.#chart.close()
  }

  #noService(): HTMLElement {
    const { none, start, again } = this.#texts.live
    const look = h('button', { type: 'button', class: 'small', onclick: () => this.#feed.again() }, again)
    return h('section', { class: 'panel stack' }, h('p', {}, none), h('p', {}, start), h('pre', {}, START), look)
  }

  #tokenForm(): HTMLElement {
    const { locked, show } = this.#texts.live
    const input = h('input', { type: 'password', autocomplete: 'off', 'data-part': 'token', required: true, value: tokenNow() })
    const submit = (event: Event) => {
      event.preventDefault()
      useToken(input.value)
      this.#feed.again()
    }
    const button = h('button', { type: 'submit', class: 'primary' }, show)
    const form = h('form', { class: 'inline', onsubmit: submit }, field(this.#texts.try.tokenOnly, input), button)
    return h('section', { class: 'panel stack', 'data-part': 'locked', hidden: true }, h('p', {}, locked), form, this.#wrongToken)
  }

  #showState(next: FeedState): void {
    // A status is read out whenever it is written.
    if (this.#state.dataset.state === next) return
    const { states, lastSeen } = this.#texts.live
    const seenMs = history.last?.atMs
    put(this.#state, next === 'reconnecting' && seenMs !== undefined ? lastSeen(this.#time(seenMs)) : states[next])
    this.#state.dataset.state = next
    this.#none.hidden = next !== 'none'
    this.#locked.hidden = next !== 'locked'
    put(this.#wrongToken, next === 'locked' && tokenNow() !== '' && this.#texts.live.wrongToken)
    this.#watched.hidden = next !== 'live' && next !== 'reconnecting'
    // The figures on the screen are old now, and look so.
    this.#watched.classList.toggle('stale', next === 'reconnecting')
  }

  #show({ limiters, startedAtMs, topRefused }: LiveEvent): void {
    if (this.#chosen !== ALL && !limiters.some(({ name }) => name === this.#chosen)) this.#chosen = ALL
    const { since, restarted } = this.#texts.live
    put(this.#since, `${since(this.#dateAndTime(startedAtMs))}${history.restarts > 0 ? ` · ${restarted}` : ''}`)
    this.#sample.show(limiters)
    this.#showChosen()
    this.#limiters.show(limiters, this.#chosen)
    this.#top.show(topRefused)
  }

  #choose(limiter: string): void {
    this.#chosen = limiter
    this.#showChosen()
    this.#limiters.show(history.last?.limiters ?? [], limiter)
  }

  #showChosen(): void {
    const { live } = this.#texts
    const label = labelOf(this.#chosen, history, this.#texts)
    const { admitted, refused, maxWaitMs } = history.rates(this.#chosen)
    put(this.#name, label)
    put(
      this.#figures,
      figure('admitted', `▲ ${live.columns.admitted}`, admitted),
      figure('refused', `▼ ${live.columns.refused}`, refused),
      figure('wait', live.waits, maxWaitMs),
    )
    this.#chart.show(history.chart(this.#chosen), live.chart(label))
  }

  get #locale(): string {
    return this.#texts.language === 'zh' ? 'zh-CN' : 'en-GB'
  }

  #time(ms: number): string {
    return new Date(ms).toLocaleTimeString(this.#locale)
  }

  /** With the month as a word: 11/12 is another day elsewhere. */
  #dateAndTime(ms: number): string {
    return new Date(ms).toLocaleString(this.#locale, { dateStyle: 'medium', timeStyle: 'medium' })
  }
}

function figure(kind: string, label: string, value: number): HTMLElement {
  const shown = rounded(value)
  return h(
    'div',
    { class: `figure ${shown === 0 ? 'zero' : kind}`, 'data-figure': kind },
    h('span', { class: 'value' }, plain(shown)),
    h('span', { class: 'note' }, label),
  )
}
