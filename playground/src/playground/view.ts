/** The playground: what was chosen on one side, what comes of it on the other. */
import { field, h, put } from '../dom.ts'
import { counted, plain, seconds } from '../numbers.ts'
import { isSceneAddress } from '../scenes/state.ts'
import type { Moment } from '../simulation/cursor.ts'
import { explained } from '../simulation/explain.ts'
import type { Failure, TrafficJob } from '../simulation/job.ts'
import type { LimitType } from '../simulation/limits.ts'
import type { Run } from '../simulation/run.ts'
import { Simulator } from '../simulation/simulator.ts'
import { tapeOf } from '../simulation/tapes.ts'
import type { Texts } from '../text/en.ts'
import { Picture } from './canvas.ts'
import { conclusionOf } from './conclusion.ts'
import { exampleSelect } from './example-select.ts'
import { LimitsPanel } from './limits-panel.ts'
import { RunShare } from './run-share.ts'
import { type Followers, RunThrough } from './run-through.ts'
import { addressOf, fromAddress, isSameLimit, type State } from './state.ts'
import { tapeTable, totalsTable } from './tables.ts'
import { TrafficPanel } from './traffic-panel.ts'

/** While playing. */
const WORDS_EVERY_MS = 120

export interface View {
  readonly element: HTMLElement
  /** When the colours have changed. */
  repaint(): void
  close(): void
}

/** What a view asks of the page around it. */
export interface Host {
  /** Where the script is that workers are started from. */
  readonly script: string
  /** What is shown now, for the address bar. */
  remember(address: string): void
  /** Shows another example, with a view of its own. */
  open(address: string): void
}

export function playgroundView(address: string, texts: Texts, host: Host): View {
  return new PlaygroundView(address, texts, host)
}

class PlaygroundView implements View {
  readonly element: HTMLElement
  readonly #texts: Texts
  readonly #host: Host
  readonly #simulator: Simulator<TrafficJob>
  readonly #words: HTMLElement
  readonly #picture: Picture
  readonly #through: RunThrough
  readonly #example: ReturnType<typeof exampleSelect>
  readonly #traffic: TrafficPanel
  readonly #limits: LimitsPanel
  readonly #share: RunShare
  readonly #conclusion = h('p', { class: 'conclusion', role: 'status', 'data-part': 'conclusion' })
  readonly #totals = h('div')
  readonly #tape = h('div')
  #state: State
  #run: Run | undefined
  #lookedMs = 0

  constructor(address: string, texts: Texts, host: Host) {
    this.#texts = texts
    this.#host = host
    this.#state = fromAddress(address)
    this.#simulator = new Simulator(host.script, {
      ran: (run) => this.#ran(run),
      looked: (call, moments) => this.#looked(call, moments),
      failed: (failure) => this.#failed(failure),
    })
    this.#words = h('div', { class: 'words', 'aria-live': 'polite', 'aria-label': texts.step.heading, 'data-part': 'words' })
    this.#picture = new Picture(this.#words, (us) => this.#through.seek(us))
    this.#through = this.#runThrough()
    this.#example = exampleSelect(addressOf(this.#state), texts, (chosen) => this.#choose(chosen))
    this.#traffic = new TrafficPanel(
      this.#state.traffic,
      texts,
      (traffic) => this.#change({ ...this.#state, traffic }),
      (board) => this.#picture.byHand(board),
    )
    this.#limits = new LimitsPanel(this.#state, texts, (next) => this.#change({ ...this.#state, ...next }))
    this.#share = new RunShare(texts)
    this.element = this.#layout()
    this.#simulate()
  }

  repaint(): void {
    this.#picture.redraw()
  }

  close(): void {
    this.#through.close()
    this.#simulator.close()
  }

  #layout(): HTMLElement {
    const { intro } = this.#texts
    return h(
      'div',
      { class: 'playground' },
      h('div', { class: 'intro' }, h('h1', {}, intro.heading), h('p', {}, intro.text)),
      this.#choices(),
      this.#results(),
    )
  }

  #choices(): HTMLElement {
    const example = h('section', { class: 'panel' }, field(this.#texts.example.label, this.#example.element))
    return h('aside', { class: 'choices' }, example, this.#traffic.element, this.#limits.element)
  }

  #results(): HTMLElement {
    const { picture, totals } = this.#texts
    const drawn = [this.#conclusion, this.#through.element, this.#picture.element, h('p', { class: 'note' }, picture.acts)]
    const counts = [h('h2', {}, totals.heading), this.#totals, h('p', { class: 'note' }, totals.waitNote)]
    return h(
      'div',
      { class: 'results' },
      h('section', { class: 'panel' }, ...drawn),
      h('section', { class: 'panel' }, ...counts),
      this.#tape,
      this.#share.element,
    )
  }

  #runThrough(): RunThrough {
    const followers: Followers = {
      picture: this.#picture,
      words: this.#words,
      placeText: (call, count) => this.#texts.play.of(counted(call + 1), counted(count), seconds(this.#run?.atUs[Math.max(0, call)] ?? 0)),
      moved: (call, isPlaying) => this.#moved(call, isPlaying),
    }
    return new RunThrough(this.#texts, followers, this.#stateTick())
  }

  /** Whether what each limit keeps is drawn. */
  #stateTick(): HTMLElement {
    const tick = h('input', { type: 'checkbox', 'data-part': 'state', checked: true })
    tick.addEventListener('change', () => this.#picture.showState(tick.checked))
    return h('label', { class: 'tick' }, tick, this.#texts.play.state)
  }

  #change(next: State): void {
    this.#state = next
    const written = addressOf(next)
    if (written !== undefined) this.#host.remember(written)
    this.#example.show(written)
    this.#simulate()
  }

  #choose(address: string): void {
    if (isSceneAddress(address)) this.#host.open(address)
    else this.#replace(fromAddress(address))
  }

  #replace(next: State): void {
    this.#change(next)
    this.#traffic.show(next.traffic)
    this.#limits.show(next)
  }

  #simulate(): void {
    const { traffic, shown, limits } = this.#state
    this.element.setAttribute('aria-busy', 'true')
    this.#simulator.run({ traffic, limits: shown.map((type) => limits[type]) })
  }

  #ran(run: Run): void {
    this.#run = run
    this.#traffic.fail('')
    put(this.#conclusion, conclusionOf(run, this.#texts))
    this.#picture.show({ run, limits: this.#state.limits, texts: this.#texts })
    // One thing in a frame: what is drawn is seen before the tables are made.
    requestAnimationFrame(() => this.#showTables(run))
    // Worth a look first: the first refusal.
    this.#through.load(run.atUs, run.lengthUs, run.firstRefused >= 0 ? run.firstRefused : run.atUs.length - 1)
  }

  #showTables(run: Run): void {
    if (run !== this.#run) return
    put(this.#totals, totalsTable(run, this.#texts))
    this.#showTape()
    this.#share.show(this.#state, run)
    this.element.dataset.calls = String(run.atUs.length)
    this.element.setAttribute('aria-busy', 'false')
  }

  #showTape(): void {
    const { traffic, limits } = this.#state
    const { table } = this.#texts
    const tape = traffic.kind === 'tape' ? tapeOf(traffic.id) : undefined
    const isAsPublished = tape !== undefined && isSameLimit(tape.limit, limits[tape.limit.type as LimitType])
    put(this.#tape)
    if (!isAsPublished) return
    const note = h('p', { class: 'note' }, table.note)
    put(this.#tape, h('section', { class: 'panel', 'data-tape': tape.id }, h('h2', {}, table.heading), tapeTable(tape, this.#texts), note))
  }

  #failed(failure: Failure): void {
    this.element.setAttribute('aria-busy', 'false')
    this.#traffic.fail(failure.kind === 'limit' ? failure.message : this.#texts.traffic.errors[failure.reason](failure.value))
  }

  #moved(call: number, isPlaying: boolean): void {
    // Nobody reads faster than this, and words are laid out anew each time.
    if (call < 0 || (isPlaying && performance.now() - this.#lookedMs < WORDS_EVERY_MS)) return
    this.#lookedMs = performance.now()
    this.#simulator.look(call)
  }

  #looked(call: number, moments: readonly Moment[]): void {
    if (this.#run === undefined) return
    const { atUs, cost } = this.#run
    const where = this.#texts.step.at(seconds(atUs[call] as number), counted(call + 1), counted(atUs.length), plain(cost[call] as number))
    put(this.#words, h('p', { class: 'at' }, where), h('dl', {}, ...moments.map((moment, row) => wordsOf(moment, row, this.#texts))))
    this.#words.dataset.call = String(call + 1)
  }
}

/** The decision of one algorithm about a call. */
function wordsOf(moment: Moment, row: number, texts: Texts): HTMLElement {
  const { outcome } = moment.after
  const { admitted, refused, impossible } = texts.step
  const text = explained(moment, texts)
  const said =
    outcome === 'allowed'
      ? h('span', { class: 'admitted' }, `▲ ${admitted}`)
      : h('span', { class: 'refused' }, `▼ ${outcome === 'limited' ? refused : impossible}`)
  const name = h('span', { class: 'name' }, texts.types[moment.type])
  const element = h('div', { class: 'row', title: text }, h('dt', {}, name, said), h('dd', {}, text))
  element.style.setProperty('--row', String(row))
  return element
}
