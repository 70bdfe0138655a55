/** The limiters of the service, a row each: what they do now, and which of them is drawn. */
import { h, put } from '../dom.ts'
import { counted, plain, rounded } from '../numbers.ts'
import { labelled, table } from '../playground/tables.ts'
import type { Texts } from '../text/en.ts'
import { ALL, type History, type LiveLimiter, MAX_LIMITERS, type Rates } from './history.ts'

export class LimitersTable {
  readonly element: HTMLElement
  readonly #texts: Texts
  readonly #history: History
  readonly #choose: (limiter: string) => void
  readonly #head: readonly string[]
  /**
   * Only the rows are new every second: a reader who has scrolled sideways, or stands here with the
   * keyboard, stays there.
   */
  readonly #rows = h('tbody')
  readonly #more = h('p', { class: 'note' })

  constructor(texts: Texts, history: History, choose: (limiter: string) => void) {
    const { columns } = texts.live
    this.#texts = texts
    this.#history = history
    this.#choose = choose
    this.#head = [
      columns.name,
      columns.admitted,
      columns.refused,
      columns.shadowed,
      columns.waiting,
      columns.wait,
      columns.errors,
      columns.store,
      columns.keys,
    ]
    const limiters = h('div', { 'data-part': 'limiters' }, table(this.#head, this.#rows, texts.live.limiters, 'cards'))
    this.element = h('section', { class: 'panel' }, h('h2', {}, texts.live.limiters), limiters, this.#more)
  }

  show(all: readonly LiveLimiter[], chosen: string): void {
    const focused = (document.activeElement as HTMLElement | null)?.dataset.choose
    put(this.#rows, this.#allRow(chosen), ...all.slice(0, MAX_LIMITERS).map((limiter) => this.#row(limiter, chosen)))
    put(this.#more, all.length > MAX_LIMITERS && this.#texts.live.more(counted(all.length - MAX_LIMITERS)))
    if (focused === undefined) return
    this.#rows.querySelector<HTMLElement>(`[data-choose="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true })
  }

  #allRow(chosen: string): HTMLElement {
    const { admitted, refused, shadowed } = this.#history.rates(ALL)
    const none = Array.from({ length: 5 }, () => h('td'))
    return labelled(this.#head, [this.#name(ALL, chosen), rateCell(admitted), rateCell(refused), rateCell(shadowed), ...none], {})
  }

  #row({ name, waiting, errors, store, keys }: LiveLimiter, chosen: string): HTMLElement {
    const rates = this.#history.rates(name)
    const cells = [
      this.#name(name, chosen),
      rateCell(rates.admitted, 'admitted'),
      rateCell(rates.refused, 'refused'),
      rateCell(rates.shadowed),
      countCell(waiting),
      h('td', { class: 'number wide' }, this.#waits(rates)),
      countCell(errors),
      h('td', { class: 'number' }, h('span', { class: 'health', 'data-health': store }, this.#texts.live.stores[store])),
      h('td', { class: 'number' }, keys === null ? '–' : counted(keys)),
    ]
    return labelled(this.#head, cells, { 'data-limiter': name })
  }

  #waits({ meanWaitMs, maxWaitMs }: Rates): string {
    if (maxWaitMs === 0 && meanWaitMs === 0) return '–'
    return this.#texts.live.ms(`${plain(rounded(meanWaitMs))} / ${plain(rounded(maxWaitMs))}`)
  }

  #name(limiter: string, chosen: string): HTMLElement {
    const act = () => this.#choose(limiter)
    const attributes = { type: 'button', class: 'link', 'data-choose': limiter, 'aria-pressed': String(chosen === limiter), onclick: act }
    return h('th', { scope: 'row' }, h('button', attributes, labelOf(limiter, this.#history, this.#texts)))
  }
}

/** A limiter as its configuration names it. */
export function labelOf(limiter: string, history: History, texts: Texts): string {
  if (limiter === ALL) return texts.live.all
  return history.last?.limiters.find(({ name }) => name === limiter)?.rule ?? limiter
}

/** What is nothing is told quietly. */
const kindOf = (value: number, kind: string): string => (value === 0 ? 'number zero' : `number ${kind}`)

const rateCell = (value: number, kind = ''): HTMLElement => h('td', { class: kindOf(rounded(value), kind) }, plain(rounded(value)))
const countCell = (value: number): HTMLElement => h('td', { class: kindOf(value, '') }, counted(value))
