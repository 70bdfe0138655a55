/** Play, pause, step, speed, and the place in the run. */
import { h, put, select } from '../dom.ts'
import type { Texts } from '../text/en.ts'
import { type Player, SPEEDS, usualSpeed } from './player.ts'

export interface PlayBarListener {
  /** Begins to go through the run, and says whether that is new. */
  goThrough(): boolean
  showAll(): void
  /** Where we are, in words. */
  placeText(call: number, count: number, atUs: number): string
}

export class PlayBar {
  readonly element: HTMLElement
  readonly #texts: Texts
  readonly #player: Player
  readonly #listener: PlayBarListener
  readonly #toggle: HTMLElement
  readonly #place: HTMLInputElement
  readonly #speeds: HTMLSelectElement
  // Not read out by itself: the slider says it when it is moved, and while playing it changes with
  // every frame.
  readonly #said = h('output', { class: 'said', 'aria-live': 'off' })
  #count = 0
  #isSpeedChosen = false

  /** `own` are controls of the picture that the bar belongs to. */
  constructor(texts: Texts, player: Player, listener: PlayBarListener, own: readonly HTMLElement[]) {
    this.#texts = texts
    this.#player = player
    this.#listener = listener
    this.#toggle = button('play', `▶ ${texts.play.play}`, () => this.#playOrPause(), 'primary')
    this.#place = this.#slider()
    this.#speeds = this.#speedSelect()
    this.element = this.#bar(own)
  }

  load(count: number, lengthUs: number): void {
    this.#count = count
    this.#place.max = String(count)
    if (this.#isSpeedChosen) return
    this.#player.speed = usualSpeed(lengthUs)
    this.#speeds.value = String(this.#player.speed)
  }

  show(call: number, atUs: number, isPlaying: boolean): void {
    const { pause, play } = this.#texts.play
    const label = isPlaying ? `❚❚ ${pause}` : `▶ ${play}`
    // In every frame while playing: what stays the same is left alone.
    if (this.#toggle.textContent !== label) put(this.#toggle, label)
    this.#place.value = String(call + 1)
    const text = this.#listener.placeText(call, this.#count, atUs)
    this.#place.setAttribute('aria-valuetext', text)
    put(this.#said, text)
  }

  #bar(own: readonly HTMLElement[]): HTMLElement {
    const { back, step, all, position } = this.#texts.play
    return h(
      'div',
      { class: 'bar', role: 'group', 'aria-label': position },
      this.#toggle,
      button('back', `◂ ${back}`, () => this.#step(this.#player.call - 1)),
      button('step', `${step} ▸`, () => this.#step(this.#player.call + 1)),
      this.#speeds,
      button('all', all, () => this.#listener.showAll()),
      ...own,
      h('div', { class: 'place' }, this.#place, this.#said),
    )
  }

  #slider(): HTMLInputElement {
    const label = this.#texts.play.position
    const place = h('input', { type: 'range', min: 1, max: 1, value: 1, step: 1, 'aria-label': label, 'data-part': 'place' })
    place.addEventListener('input', () => this.#step(Number(place.value) - 1))
    return place
  }

  #speedSelect(): HTMLSelectElement {
    const options = SPEEDS.map((speed) => [String(speed), `${speed}×`] as const)
    const speeds = select(options, String(this.#player.speed), (speed) => {
      this.#isSpeedChosen = true
      this.#player.speed = Number(speed)
    })
    speeds.setAttribute('aria-label', this.#texts.play.speed)
    return speeds
  }

  #playOrPause(): void {
    const isNew = this.#listener.goThrough()
    if (this.#player.isPlaying) this.#player.pause()
    else this.#player.play(isNew)
  }

  #step(call: number): void {
    this.#listener.goThrough()
    this.#player.goTo(call)
  }
}

function button(part: string, label: string, act: () => void, look?: string): HTMLElement {
  return h('button', { type: 'button', class: look, 'data-part': part, onclick: act }, label)
}
