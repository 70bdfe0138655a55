/** A client that watches /v1/live, over a real socket. */
import { get, type IncomingMessage } from 'node:http'
import { expectSchema } from './client.ts'

export interface LiveEvent {
  readonly atMs: number
  readonly startedAtMs: number
  readonly limiters: {
    readonly name: string
    readonly rule: string | null
    readonly allowed: number
    readonly denied: number
    readonly shadowed: number
    readonly errors: number
    readonly waiting: number
    readonly waits: { readonly count: number; readonly sumMs: number; readonly maxMs: number }
    readonly store: string
    readonly keys: number | null
  }[]
  readonly topRefused: { limiter: string; key: string; count: number; atMost: boolean }[] | null
}

export class LiveClient {
  readonly response: IncomingMessage
  /** Every event so far, each held against the document. */
  readonly events: LiveEvent[] = []
  /** What stood before the first. */
  head = ''
  /** How it ended: `end` in peace, `cut` otherwise. */
  readonly ended: Promise<'end' | 'cut'>
  #rest = ''
  #onEvent: () => void = () => undefined

  constructor(response: IncomingMessage) {
    this.response = response
    response.setEncoding('utf8').on('data', (piece) => this.#read(piece))
    this.ended = new Promise((resolve) => {
      response.on('error', () => undefined)
      response.on('close', () => resolve(response.complete ? 'end' : 'cut'))
    })
  }

  /** Waits until there are so many. */
  async event(place: number): Promise<LiveEvent> {
    while (this.events.length <= place) {
      await new Promise<void>((resolve) => {
        this.#onEvent = resolve
      })
    }
    return this.events[place] as LiveEvent
  }

  leave(): void {
    this.response.destroy()
  }

  #read(piece: string): void {
    const blocks = (this.#rest + piece).split('\n\n')
    this.#rest = blocks.pop() as string
    for (const block of blocks) {
      if (block.startsWith('event: live\ndata: ')) this.#take(JSON.parse(block.slice('event: live\ndata: '.length)))
      else this.head += block
    }
    this.#onEvent()
  }

  #take(event: LiveEvent): void {
    expectSchema('Live', event)
    this.events.push(event)
  }
}

/** From this machine, at whichever of its addresses. */
export async function watching(url: string, localAddress?: string): Promise<LiveClient> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(`${url}/v1/live`, { agent: false, ...(localAddress === undefined ? {} : { localAddress }) }, resolve).on('error', reject)
  })
  return new LiveClient(response)
}
