/** The keys that are refused most, if the service was asked to look at keys. */
import { h, put } from '../dom.ts'
import { counted } from '../numbers.ts'
import { table } from '../playground/tables.ts'
import type { Texts } from '../text/en.ts'
import type { History, LiveEvent } from './history.ts'
import { labelOf } from './limiters-table.ts'

const START_WITH_KEYS = 'npm start -- --top-refused 20'

export class TopKeys {
  readonly element: HTMLElement
  readonly #texts: Texts
  readonly #history: History
  readonly #top = h('div', { 'data-part': 'top' })
  #told: string | undefined

  constructor(texts: Texts, history: History) {
    this.#texts = texts
    this.#history = history
    this.element = h('section', { class: 'panel' }, h('h2', {}, texts.live.top), this.#top)
  }

  show(keys: LiveEvent['topRefused']): void {
    // What stays as it is can be selected and copied.
    const told = JSON.stringify(keys)
    if (told === this.#told) return
    this.#told = told
    const { topOff, topNone } = this.#texts.live
    if (keys === null) put(this.#top, h('p', { class: 'note' }, topOff), h('pre', {}, START_WITH_KEYS))
    else if (keys.length === 0) put(this.#top, h('p', { class: 'note' }, topNone))
    else put(this.#top, this.#table(keys))
  }

  #table(keys: NonNullable<LiveEvent['topRefused']>): HTMLElement {
    const { topColumns, atMost, top } = this.#texts.live
    const rows = keys.map(({ limiter, key, count, atMost: isBound }) =>
      h(
        'tr',
        {},
        h('th', { scope: 'row', class: 'key' }, key),
        h('td', { class: 'number' }, labelOf(limiter, this.#history, this.#texts)),
        h('td', { class: 'number' }, isBound ? atMost(counted(count)) : counted(count)),
      ),
    )
    return table([topColumns.key, topColumns.limiter, topColumns.count], h('tbody', {}, ...rows), top)
  }
}
