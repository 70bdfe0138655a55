/**
 * Going through a run: the player, its bar, the line in the picture, and the veil over what has not
 * come yet.
 */
import type { Texts } from '../text/en.ts'
import { PlayBar } from './play-bar.ts'
import { Player } from './player.ts'

/** The parts of a view that follow the player. */
export interface Followers {
  readonly picture: { point(atUs: number | undefined, hidesRest: boolean): void; close(): void }
  /** The text about the current call. */
  readonly words: HTMLElement
  /** Where we are, in words. */
  placeText(call: number, count: number, atUs: number): string
  moved(call: number, isPlaying: boolean): void
}

export class RunThrough {
  readonly #player: Player
  readonly #bar: PlayBar
  readonly #followers: Followers
  #atUs = new Float64Array(0)
  /**
   * Whether what has not come yet is veiled: from the first step until everything is shown again.
   */
  #isGoing = false

  /** `own` are controls of the picture, for the bar. */
  constructor(texts: Texts, followers: Followers, ...own: readonly HTMLElement[]) {
    this.#followers = followers
    this.#player = new Player({ moved: (call, atUs, isPlaying) => this.#moved(call, atUs, isPlaying) })
    const steps = { goThrough: () => this.#goThrough(), showAll: () => this.#showAll(), placeText: followers.placeText }
    this.#bar = new PlayBar(texts, this.#player, steps, own)
  }

  /** The bar. */
  get element(): HTMLElement {
    return this.#bar.element
  }

  get call(): number {
    return this.#player.call
  }

  get isPlaying(): boolean {
    return this.#player.isPlaying
  }

  /** Shows all of a new run, with the line at call `first`. */
  load(atUs: Float64Array<ArrayBuffer>, lengthUs: number, first: number): void {
    this.#atUs = atUs
    this.#isGoing = false
    this.#player.load(atUs, lengthUs)
    this.#bar.load(atUs.length, lengthUs)
    this.#player.goTo(first)
  }

  seek(us: number): void {
    this.#isGoing = true
    this.#player.seek(us)
  }

  close(): void {
    this.#player.pause()
    this.#followers.picture.close()
  }

  #moved(call: number, atUs: number, isPlaying: boolean): void {
    const { picture, words, moved } = this.#followers
    if (isPlaying) this.#isGoing = true
    // Words that change many times a second are not read out.
    const live = isPlaying ? 'off' : 'polite'
    if (words.ariaLive !== live) words.ariaLive = live
    picture.point(atUs, this.#isGoing)
    words.classList.toggle('going', this.#isGoing)
    this.#bar.show(call, atUs, isPlaying)
    moved(call, isPlaying)
  }

  /** Says whether that is new. */
  #goThrough(): boolean {
    const isNew = !this.#isGoing
    this.#isGoing = true
    return isNew
  }

  #showAll(): void {
    this.#player.pause()
    this.#isGoing = false
    this.#followers.words.classList.remove('going')
    this.#followers.picture.point(this.#atUs[Math.max(0, this.call)], false)
  }
}
