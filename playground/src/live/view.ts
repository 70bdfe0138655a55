/** Live: what the running service admits and refuses, every second. */
import { h, put } from '../dom.ts'
import { counted, plain } from '../numbers.ts'
import { table } from '../playground/tables.ts'
import type { View } from '../playground/view.ts'
import type { Texts } from '../text/en.ts'
import { Chart } from './chart.ts'
import { Feed, type FeedState } from './feed.ts'
import { ALL, History, type LiveEvent, type LiveLimiter, MAX_LIMITERS } from './history.ts'

const START = 'npm start'
const START_WITH_KEYS = 'npm start -- --top-refused 20'

/** Kept while another tab is open, or another language is chosen. */
const history = new History()

export function liveView(texts: Texts): View {
  const chart = new Chart(texts)
  let chosen = ALL
  const state = h('span', { class: 'state', role: 'status', 'data-part': 'state' })
  const since = h('span', { class: 'note', 'data-part': 'since' })
  const figures = h('div', { class: 'figures' })
  const name = h('h2', {})
  const { columns } = texts.live
  const head = [
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
  // Only the rows are new every second: whoever has scrolled sideways, or stands here with the keyboard, stays there.
  const rows = h('tbody')
  const limiters = h('div', { 'data-part': 'limiters' }, table(head, rows, texts.live.limiters))
  const more = h('p', { class: 'note' })
  const top = h('div', { 'data-part': 'top' })
  let toldTop: string | undefined
  const none = h(
    'section',
    { class: 'panel stack' },
    h('p', {}, texts.live.none),
    h('p', {}, texts.live.start),
    h('pre', {}, START),
    h('button', { type: 'button', class: 'small', onclick: () => feed.again() }, texts.live.again),
  )
  const watched = h(
    'div',
    { class: 'stacked' },
    h('section', { class: 'panel' }, name, figures, chart.element),
    h('section', { class: 'panel' }, h('h2', {}, texts.live.limiters), limiters, more),
    h('section', { class: 'panel' }, h('h2', {}, texts.live.top), top),
  )
  const element = h(
    'div',
    { class: 'stacked' },
    h('div', { class: 'intro' }, h('h1', {}, texts.live.heading), h('p', { class: 'inline' }, state, since)),
    none,
    watched,
  )
  // What was last known, until the service says more.
  if (history.last !== undefined) showEvent(history.last)
  const feed = new Feed({ event, state: show }, history.last !== undefined)
  return {
    element,
    repaint: () => chart.repaint(),
    close() {
      feed.close()
      chart.close()
    },
  }

  function show(next: FeedState): void {
    // A status is read out whenever it is written.
    if (state.dataset.state === next) return
    put(state, texts.live.states[next])
    state.dataset.state = next
    none.hidden = next !== 'none'
    watched.hidden = next === 'none' || next === 'connecting'
  }

  function event(next: LiveEvent): void {
    history.add(next)
    showEvent(next)
  }

  function showEvent(next: LiveEvent): void {
    if (chosen !== ALL && !next.limiters.some((limiter) => limiter.name === chosen)) chosen = ALL
    const started = new Date(next.startedAtMs).toLocaleString(texts.language === 'zh' ? 'zh-CN' : 'en-GB')
    put(since, `${texts.live.since(started)}${history.restarts > 0 ? ` · ${texts.live.restarted}` : ''}`)
    showChosen()
    showLimiters(next.limiters)
    showTop(next.topRefused)
  }

  function showChosen(): void {
    const shown = labelOf(chosen)
    put(name, shown)
    const { admitted, refused, maxWaitMs } = history.rates(chosen)
    const { waits } = texts.live
    put(
      figures,
      figure('admitted', `▲ ${columns.admitted}`, plain(rounded(admitted))),
      figure('refused', `▼ ${columns.refused}`, plain(rounded(refused))),
      figure('wait', waits, plain(rounded(maxWaitMs))),
    )
    chart.show(history.chart(chosen), texts.live.chart(shown))
  }

  function showLimiters(all: readonly LiveLimiter[]): void {
    const focused = (document.activeElement as HTMLElement | null)?.dataset.choose
    put(rows, limiterChoice(ALL), ...all.slice(0, MAX_LIMITERS).map((limiter) => limiterRow(limiter)))
    put(more, all.length > MAX_LIMITERS && texts.live.more(counted(all.length - MAX_LIMITERS)))
    // The rows are new every second; whoever stands on one stays there.
    if (focused !== undefined) limiters.querySelector<HTMLElement>(`[data-choose="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true })
  }

  function labelOf(limiter: string): string {
    if (limiter === ALL) return texts.live.all
    return history.last?.limiters.find(({ name }) => name === limiter)?.rule ?? limiter
  }

  function choice(limiter: string): HTMLElement {
    const act = () => {
      chosen = limiter
      showChosen()
      showLimiters(history.last?.limiters ?? [])
    }
    return h(
      'button',
      { type: 'button', class: 'link', 'data-choose': limiter, 'aria-pressed': String(chosen === limiter), onclick: act },
      labelOf(limiter),
    )
  }

  function limiterChoice(limiter: string): HTMLElement {
    const { admitted, refused, shadowed } = history.rates(limiter)
    return h(
      'tr',
      {},
      h('th', { scope: 'row' }, choice(limiter)),
      cell(admitted),
      cell(refused),
      cell(shadowed),
      ...new Array(5).fill(0).map(() => h('td')),
    )
  }

  function limiterRow({ name: of, waiting, errors, store, keys }: LiveLimiter): HTMLElement {
    const { admitted, refused, shadowed, meanWaitMs, maxWaitMs } = history.rates(of)
    const waits = maxWaitMs === 0 && meanWaitMs === 0 ? '–' : texts.live.ms(`${plain(rounded(meanWaitMs))} / ${plain(rounded(maxWaitMs))}`)
    return h(
      'tr',
      { 'data-limiter': of },
      h('th', { scope: 'row' }, choice(of)),
      cell(admitted, 'admitted'),
      cell(refused, 'refused'),
      cell(shadowed),
      h('td', { class: 'number' }, counted(waiting)),
      h('td', { class: 'number' }, waits),
      h('td', { class: 'number' }, counted(errors)),
      h('td', { class: 'number' }, h('span', { class: 'health', 'data-health': store }, texts.live.stores[store])),
      h('td', { class: 'number' }, keys === null ? '–' : counted(keys)),
    )
  }

  function showTop(keys: LiveEvent['topRefused']): void {
    // What stays as it is can be selected and copied.
    const told = JSON.stringify(keys)
    if (told === toldTop) return
    toldTop = told
    if (keys === null) put(top, h('p', { class: 'note' }, texts.live.topOff), h('pre', {}, START_WITH_KEYS))
    else if (keys.length === 0) put(top, h('p', { class: 'note' }, texts.live.topNone))
    else put(top, topTable(keys))
  }

  function topTable(keys: NonNullable<LiveEvent['topRefused']>): HTMLElement {
    const { topColumns, atMost } = texts.live
    const found = keys.map(({ limiter, key, count, atMost: isBound }) =>
      h(
        'tr',
        {},
        h('th', { scope: 'row', class: 'key' }, key),
        h('td', { class: 'number' }, labelOf(limiter)),
        h('td', { class: 'number' }, isBound ? atMost(counted(count)) : counted(count)),
      ),
    )
    return table([topColumns.key, topColumns.limiter, topColumns.count], h('tbody', {}, ...found), texts.live.top)
  }
}

/** Rates to one decimal. */
const rounded = (value: number): number => Math.round(value * 10) / 10

function cell(value: number, kind?: string): HTMLElement {
  return h('td', { class: `number ${kind ?? ''}` }, plain(rounded(value)))
}

function figure(kind: string, label: string, value: string): HTMLElement {
  return h(
    'div',
    { class: `figure ${kind}`, 'data-figure': kind },
    h('span', { class: 'value' }, value),
    h('span', { class: 'note' }, label),
  )
}
