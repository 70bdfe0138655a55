/**
 * A scene with a simulated server: what is given on one side, what comes of it on the other. The
 * server is made slower and faster by hand.
 */
import { field, h, put } from '../dom.ts'
import { plain, seconds } from '../numbers.ts'
import { DrawingBoard } from '../playground/drawing.ts'
import { exampleSelect } from '../playground/example-select.ts'
import { type Followers, RunThrough } from '../playground/run-through.ts'
import { SharePanel } from '../playground/share-panel.ts'
import { TimePicture } from '../playground/time-picture.ts'
import type { Host, View } from '../playground/view.ts'
import type { Failure, RunOf } from '../simulation/job.ts'
import { SAMPLES, sampleTimesUs } from '../simulation/samples.ts'
import { Simulator } from '../simulation/simulator.ts'
import { COLUMNS } from '../simulation/traffic.ts'
import type { Texts } from '../text/en.ts'
import { chartDrawing } from './chart.ts'
import { sceneControls } from './controls.ts'
import type { SceneKind } from './kind.ts'
import { kneeScene } from './knee.ts'
import { slowScene } from './slow.ts'
import { BOARDS, type SceneState, sceneAddress, sceneFrom } from './state.ts'

export function sceneView(address: string, texts: Texts, host: Host): View {
  const state = sceneFrom(address)
  return state.scene === 'slow' ? new SceneView(state, slowScene, texts, host) : new SceneView(state, kneeScene, texts, host)
}

class SceneView<S extends SceneState> implements View {
  readonly element: HTMLElement
  readonly #kind: SceneKind<S>
  readonly #texts: Texts
  readonly #host: Host
  readonly #simulator: Simulator<S>
  readonly #picture = new TimePicture((us) => this.#through.seek(us))
  readonly #through: RunThrough
  readonly #example: ReturnType<typeof exampleSelect>
  readonly #share: SharePanel
  readonly #conclusion = h('p', { class: 'conclusion', role: 'status', 'data-part': 'conclusion' })
  readonly #moment = h('p', { class: 'moment', 'aria-live': 'polite', 'data-part': 'moment' })
  readonly #note = h('p', { class: 'note' })
  readonly #totals = h('div')
  readonly #error = h('p', { class: 'error', role: 'alert' })
  #state: S
  #run: RunOf<S> | undefined

  constructor(state: S, kind: SceneKind<S>, texts: Texts, host: Host) {
    this.#state = state
    this.#kind = kind
    this.#texts = texts
    this.#host = host
    this.#simulator = new Simulator<S>(host.script, { ran: (run) => this.#ran(run), failed: (failure) => this.#failed(failure) })
    this.#through = this.#runThrough()
    this.#example = exampleSelect(sceneAddress(state), texts, (address) => host.open(address))
    this.#share = new SharePanel(texts, h('span', {}, 'TypeScript'))
    this.element = this.#layout()
    this.#showBoard()
    this.#simulate()
  }

  repaint(): void {
    this.#picture.redraw()
  }

  close(): void {
    this.#through.close()
    this.#simulator.close()
  }

  #runThrough(): RunThrough {
    const { scenes } = this.#texts
    const button = (part: string, label: string, isSlower: boolean) =>
      h('button', { type: 'button', 'data-part': part, title: scenes.fromHere, onclick: () => this.#changeSpeed(isSlower) }, label)
    const followers: Followers = {
      picture: this.#picture,
      words: this.#moment,
      placeText: (_, __, atUs) => scenes.at(seconds(Math.round(atUs / 1e5) * 1e5)),
      moved: (sample) => this.#say(sample),
    }
    return new RunThrough(this.#texts, followers, button('slower', scenes.slower, true), button('faster', scenes.faster, false))
  }

  #layout(): HTMLElement {
    const { heading, text } = this.#texts.scenes[this.#state.scene]
    return h(
      'div',
      { class: 'playground scene', 'data-scene': this.#state.scene },
      h('div', { class: 'intro' }, h('h1', {}, heading), h('p', {}, text)),
      this.#choices(),
      this.#results(),
    )
  }

  #choices(): HTMLElement {
    const example = h('section', { class: 'panel' }, field(this.#texts.example.label, this.#example.element))
    const controls = sceneControls(this.#state, this.#texts, (part) => this.#change({ ...this.#state, ...part }))
    return h('aside', { class: 'choices' }, example, controls)
  }

  #results(): HTMLElement {
    const { totals } = this.#texts
    const drawn = [this.#conclusion, this.#through.element, this.#error, this.#moment, this.#picture.element, this.#note]
    return h(
      'div',
      { class: 'results' },
      h('section', { class: 'panel' }, ...drawn),
      h('section', { class: 'panel' }, h('h2', {}, totals.heading), this.#totals),
      this.#share.element,
    )
  }

  #showBoard(): void {
    const { scenes } = this.#texts
    const { scene, columns } = this.#state
    const options = {
      ...BOARDS[scene],
      label: scenes[scene].hand,
      column: (from: string, to: string) => scenes.column(scenes[scene].hand, from, to),
      valueText: (value: number) => this.#kind.valueText(value, this.#texts),
    }
    const board = new DrawingBoard(columns, options, (next) => this.#change({ ...this.#state, columns: next }))
    this.#picture.byHand(board.element)
  }

  /** From where we are until the end; what has been seen stays as it was. */
  #changeSpeed(isSlower: boolean): void {
    const { least, most } = BOARDS[this.#state.scene]
    const here = Math.floor((Math.max(0, this.#through.call) * COLUMNS) / SAMPLES)
    const from = this.#through.isPlaying ? here + 1 : here
    const changed = (value: number) => Math.max(least, Math.min(most, this.#kind.changed(value, isSlower)))
    this.#change({ ...this.#state, columns: this.#state.columns.map((value, k) => (k < from ? value : changed(value))) })
    this.#showBoard()
  }

  #change(next: S): void {
    this.#state = next
    const address = sceneAddress(next)
    this.#host.remember(address)
    this.#example.show(address)
    this.#simulate()
  }

  #simulate(): void {
    this.element.setAttribute('aria-busy', 'true')
    this.#simulator.run(this.#state)
  }

  #ran(run: RunOf<S>): void {
    const isFirst = this.#run === undefined
    this.#run = run
    put(this.#error)
    put(this.#conclusion, ...markedParts(this.#kind.conclusion(this.#state, run, this.#texts)))
    put(this.#note, this.#kind.note(this.#state, this.#texts))
    put(this.#totals, this.#kind.totals(this.#state, run, this.#texts))
    const drawing = chartDrawing(this.#kind.chart(this.#state, run, this.#texts))
    this.#picture.show(drawing)
    const address = sceneAddress(this.#state)
    this.#share.show({ address, drawing, name: this.#state.scene, code: this.#kind.code(this.#state) })
    if (isFirst) this.#through.load(sampleTimesUs(drawing.lengthUs / 1000), drawing.lengthUs, this.#kind.first(run))
    else this.#say(this.#through.call)
    this.element.setAttribute('aria-busy', 'false')
  }

  #failed(failure: Failure): void {
    this.element.setAttribute('aria-busy', 'false')
    put(this.#error, failure.kind === 'limit' ? failure.message : plain(Number(failure.value)))
  }

  #say(sample: number): void {
    if (this.#run === undefined) return
    put(this.#moment, this.#kind.moment(this.#state, this.#run, Math.max(0, sample), this.#texts))
  }
}

/** What stands between asterisks is above a limit. */
function markedParts(text: string): (string | HTMLElement)[] {
  return text.split('*').map((part, k) => (k % 2 === 0 ? part : h('strong', { class: 'above' }, part)))
}
