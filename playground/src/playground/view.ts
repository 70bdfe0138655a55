/** The playground: what was chosen on one side, what comes of it on the other. */
import { field, h, put } from '../dom.ts'
import { counted, plain, seconds } from '../numbers.ts'
import type { Moment } from '../simulation/cursor.ts'
import { explained } from '../simulation/explain.ts'
import type { Failure } from '../simulation/job.ts'
import type { Run } from '../simulation/run.ts'
import { Simulator } from '../simulation/simulator.ts'
import { tapeOf } from '../simulation/tapes.ts'
import type { Texts } from '../text/en.ts'
import { Picture } from './canvas.ts'
import { conclusionOf } from './conclusion.ts'
import { exampleSelect } from './example-select.ts'
import { limitsPanel } from './limits-panel.ts'
import { playBar } from './play-bar.ts'
import { Player } from './player.ts'
import { sharePanel } from './share-panel.ts'
import { addressOf, fromAddress, type State } from './state.ts'
import { tapeTable, totalsTable } from './tables.ts'
import { trafficPanel } from './traffic-panel.ts'

/** While playing. */
const WORDS_EVERY_MS = 120

export interface View {
  readonly element: HTMLElement
  /** When the colours have changed. */
  repaint(): void
  close(): void
}

export function playgroundView(script: string, address: string, texts: Texts, remember: (address: string) => void): View {
  let state: State = fromAddress(address)
  let run: Run | undefined
  /** Whether what has not come yet is veiled: from the first step until everything is shown again. */
  let goesThrough = false
  let lookedMs = 0

  const simulator = new Simulator(script, { ran, looked, failed })
  const player = new Player({ moved })
  const words = h('div', { class: 'words', 'aria-live': 'polite', 'aria-label': texts.step.heading, 'data-part': 'words' })
  const picture = new Picture(words, (us) => {
    goesThrough = true
    player.seek(us)
  })
  const bar = playBar(texts, player, { goThrough, showAll, showState: (hasState) => picture.showState(hasState) })
  const example = exampleSelect(state, texts, replace)
  const traffic = trafficPanel(
    state.traffic,
    texts,
    (next) => change({ ...state, traffic: next }),
    (board) => picture.byHand(board),
  )
  const limits = limitsPanel(state, texts, (next) => change({ ...state, ...next }))
  const share = sharePanel(texts)
  const conclusion = h('p', { class: 'conclusion', role: 'status', 'data-part': 'conclusion' })
  const totals = h('div')
  const tape = h('div')

  const element = h(
    'div',
    { class: 'playground' },
    h('div', { class: 'intro' }, h('h1', {}, texts.intro.heading), h('p', {}, texts.intro.text)),
    h(
      'aside',
      { class: 'choices' },
      h('section', { class: 'panel' }, field(texts.example.label, example.element)),
      traffic.element,
      limits.element,
    ),
    h(
      'div',
      { class: 'results' },
      h('section', { class: 'panel' }, conclusion, bar.element, picture.element, h('p', { class: 'note' }, texts.picture.acts)),
      h('section', { class: 'panel' }, h('h2', {}, texts.totals.heading), totals, h('p', { class: 'note' }, texts.totals.waitNote)),
      tape,
      share.element,
    ),
  )
  simulate()
  return {
    element,
    repaint: () => picture.redraw(),
    close() {
      player.pause()
      simulator.close()
      picture.close()
    },
  }

  function change(next: State): void {
    state = next
    const written = addressOf(state)
    if (written !== undefined) remember(written)
    example.show(written)
    simulate()
  }

  function replace(next: State): void {
    change(next)
    traffic.show(next.traffic)
    limits.show(next)
  }

  function simulate(): void {
    element.setAttribute('aria-busy', 'true')
    simulator.run({ traffic: state.traffic, limits: state.shown.map((type) => state.limits[type]) })
  }

  function ran(next: Run): void {
    run = next
    goesThrough = false
    traffic.fail('')
    put(conclusion, conclusionOf(next, texts))
    picture.show({ run: next, limits: state.limits, texts })
    // One thing in a frame: what is drawn is seen before the tables are made.
    requestAnimationFrame(() => showTables(next))
    player.load(next.atUs, next.lengthUs)
    bar.load(next.atUs.length, next.lengthUs)
    // What is worth a look first: where somebody says no.
    player.goTo(next.firstRefused >= 0 ? next.firstRefused : next.atUs.length - 1)
  }

  function showTables(of: Run): void {
    if (of !== run) return
    put(totals, totalsTable(of, texts))
    showTape()
    share.show(state, of)
    element.dataset.calls = String(of.atUs.length)
    element.setAttribute('aria-busy', 'false')
  }

  function showTape(): void {
    const found = state.traffic.kind === 'tape' ? tapeOf(state.traffic.id) : undefined
    const isAsPublished = found !== undefined && JSON.stringify(found.limit) === JSON.stringify(state.limits[found.limit.type as never])
    if (found === undefined || !isAsPublished) put(tape)
    else
      put(
        tape,
        h(
          'section',
          { class: 'panel', 'data-tape': found.id },
          h('h2', {}, texts.table.heading),
          tapeTable(found, texts),
          h('p', { class: 'note' }, texts.table.note),
        ),
      )
  }

  function failed(failure: Failure): void {
    element.setAttribute('aria-busy', 'false')
    traffic.fail(failure.kind === 'limit' ? failure.message : texts.traffic.errors[failure.reason](failure.value))
  }

  function moved(call: number, atUs: number, isPlaying: boolean): void {
    if (isPlaying) goesThrough = true
    // Words that change many times a second are not read out.
    if (words.ariaLive !== (isPlaying ? 'off' : 'polite')) words.ariaLive = isPlaying ? 'off' : 'polite'
    picture.point(atUs, goesThrough)
    words.classList.toggle('going', goesThrough)
    bar.show(call, run?.atUs[Math.max(0, call)] ?? 0, isPlaying)
    // Nobody reads faster than this, and words are laid out anew each time.
    if (call < 0 || (isPlaying && performance.now() - lookedMs < WORDS_EVERY_MS)) return
    lookedMs = performance.now()
    simulator.look(call)
  }

  function goThrough(): boolean {
    const isNew = !goesThrough
    goesThrough = true
    return isNew
  }

  function showAll(): void {
    player.pause()
    goesThrough = false
    words.classList.remove('going')
    picture.point(run?.atUs[Math.max(0, player.call)], false)
  }

  function looked(call: number, moments: readonly Moment[]): void {
    if (run === undefined) return
    const atUs = run.atUs[call] as number
    put(
      words,
      h('p', { class: 'at' }, texts.step.at(seconds(atUs), counted(call + 1), counted(run.atUs.length), plain(run.cost[call] as number))),
      h('dl', {}, ...moments.map(wordsOf)),
    )
    words.dataset.call = String(call + 1)
  }

  function wordsOf(moment: Moment, row: number): HTMLElement {
    const { outcome } = moment.after
    const said = outcome === 'allowed' ? texts.step.admitted : outcome === 'limited' ? texts.step.refused : texts.step.impossible
    const mark = outcome === 'allowed' ? '▲' : '▼'
    const text = explained(moment, texts)
    const element = h(
      'div',
      { class: 'row', title: text },
      h(
        'dt',
        {},
        h('span', { class: 'name' }, texts.types[moment.type]),
        h('span', { class: outcome === 'allowed' ? 'admitted' : 'refused' }, `${mark} ${said}`),
      ),
      h('dd', {}, text),
    )
    element.style.setProperty('--row', String(row))
    return element
  }
}
