/** Play, pause, step, speed, and the place in the run. */
import { h, put, select } from '../dom.ts'
import { counted, seconds } from '../numbers.ts'
import type { Texts } from '../text/en.ts'
import { type Player, SPEEDS } from './player.ts'

export interface PlayBar {
  readonly element: HTMLElement
  load(count: number): void
  show(call: number, atUs: number, isPlaying: boolean): void
}

export function playBar(texts: Texts, player: Player, goThrough: () => void, showAll: () => void): PlayBar {
  let count = 0
  const toggle = h('button', { type: 'button', class: 'primary', 'data-part': 'play', onclick: playOrPause }, `▶ ${texts.play.play}`)
  const place = h('input', { type: 'range', min: 1, max: 1, value: 1, step: 1, 'aria-label': texts.play.position, 'data-part': 'place' })
  // Not read out by itself: the slider says it to whoever moves it, and while playing it changes with every frame.
  const said = h('output', { class: 'said', 'aria-live': 'off' })
  place.addEventListener('input', () => step(Number(place.value) - 1))
  const speeds = select(
    SPEEDS.map((speed) => [String(speed), `${speed}×`] as const),
    String(player.speed),
    (speed) => {
      player.speed = Number(speed)
    },
  )
  speeds.setAttribute('aria-label', texts.play.speed)
  const button = (part: string, sign: string, label: string, act: () => void) =>
    h('button', { type: 'button', 'data-part': part, 'aria-label': label, title: label, onclick: act }, sign)
  const element = h(
    'div',
    { class: 'bar', role: 'group', 'aria-label': texts.play.position },
    toggle,
    button('back', '◀', texts.play.back, () => step(player.call - 1)),
    h('button', { type: 'button', 'data-part': 'step', onclick: () => step(player.call + 1) }, `${texts.play.step} ▸`),
    speeds,
    h('button', { type: 'button', 'data-part': 'all', onclick: showAll }, texts.play.all),
    h('div', { class: 'place' }, place, said),
  )
  return { element, load, show }

  function playOrPause(): void {
    goThrough()
    if (player.isPlaying) player.pause()
    else player.play()
  }

  function step(call: number): void {
    goThrough()
    player.goTo(call)
  }

  function load(calls: number): void {
    count = calls
    place.max = String(calls)
  }

  function show(call: number, atUs: number, isPlaying: boolean): void {
    put(toggle, isPlaying ? `❚❚ ${texts.play.pause}` : `▶ ${texts.play.play}`)
    place.value = String(call + 1)
    const text = texts.play.of(counted(call + 1), counted(count), seconds(atUs))
    place.setAttribute('aria-valuetext', text)
    put(said, text)
  }
}
