/** Play, pause, step, speed, and the place in the run. */
import { h, put, select } from '../dom.ts'
import type { Texts } from '../text/en.ts'
import { type Player, SPEEDS, usualSpeed } from './player.ts'

export interface PlayBar {
  readonly element: HTMLElement
  load(count: number, lengthUs: number): void
  show(call: number, atUs: number, isPlaying: boolean): void
}

export interface PlayBarListener {
  /** Begins to go through the run, and says whether that is new. */
  goThrough(): boolean
  showAll(): void
  /** Where we are, in words. */
  placeText(call: number, count: number, atUs: number): string
}

/** `own` are controls of the picture that it belongs to. */
export function playBar(texts: Texts, player: Player, listener: PlayBarListener, ...own: readonly HTMLElement[]): PlayBar {
  let count = 0
  let isSpeedChosen = false
  const toggle = h('button', { type: 'button', class: 'primary', 'data-part': 'play', onclick: playOrPause }, `▶ ${texts.play.play}`)
  const place = h('input', { type: 'range', min: 1, max: 1, value: 1, step: 1, 'aria-label': texts.play.position, 'data-part': 'place' })
  // Not read out by itself: the slider says it when it is moved, and while playing it changes with every frame.
  const said = h('output', { class: 'said', 'aria-live': 'off' })
  place.addEventListener('input', () => step(Number(place.value) - 1))
  const speeds = select(
    SPEEDS.map((speed) => [String(speed), `${speed}×`] as const),
    String(player.speed),
    (speed) => {
      isSpeedChosen = true
      player.speed = Number(speed)
    },
  )
  speeds.setAttribute('aria-label', texts.play.speed)
  const button = (part: string, label: string, act: () => void) => h('button', { type: 'button', 'data-part': part, onclick: act }, label)
  const element = h(
    'div',
    { class: 'bar', role: 'group', 'aria-label': texts.play.position },
    toggle,
    button('back', `◂ ${texts.play.back}`, () => step(player.call - 1)),
    button('step', `${texts.play.step} ▸`, () => step(player.call + 1)),
    speeds,
    button('all', texts.play.all, () => listener.showAll()),
    ...own,
    h('div', { class: 'place' }, place, said),
  )
  return { element, load, show }

  function playOrPause(): void {
    const isNew = listener.goThrough()
    if (player.isPlaying) player.pause()
    else player.play(isNew)
  }

  function step(call: number): void {
    listener.goThrough()
    player.goTo(call)
  }

  function load(calls: number, lengthUs: number): void {
    count = calls
    place.max = String(calls)
    if (isSpeedChosen) return
    player.speed = usualSpeed(lengthUs)
    speeds.value = String(player.speed)
  }

  function show(call: number, atUs: number, isPlaying: boolean): void {
    const label = isPlaying ? `❚❚ ${texts.play.pause}` : `▶ ${texts.play.play}`
    // In every frame while playing: what stays the same is left alone.
    if (toggle.textContent !== label) put(toggle, label)
    place.value = String(call + 1)
    const text = listener.placeText(call, count, atUs)
    place.setAttribute('aria-valuetext', text)
    put(said, text)
  }
}
