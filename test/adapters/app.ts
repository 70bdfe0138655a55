/**
 * The application that every adapter serves, and what the tests ask of it. Runs as it is in Node,
 * Bun and Deno, so it imports nothing but the library. Its clock stands still until it is told to
 * move.
 */

import type { Limiter } from '../../src/limiter/limiter.ts'
import { createLimiter } from '../../src/limiter/limiter.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'
import { SETUPS, type SetupName } from './setups.ts'

/** Finds a header in whatever a framework calls a request. */
export type HeaderOf = (native: never, name: string) => string | undefined

export interface Answered {
  readonly status: number
  readonly body: string
}

// biome-ignore lint/suspicious/noExplicitAny: options for every framework alike
export type AnyOptions = any

/** A response of Node, which closes when the client leaves. */
interface Closing {
  once(event: 'close', listener: () => void): unknown
}

/** The same, to answer on in pieces. */
interface Streaming extends Closing {
  writeHead(status: number): unknown
  write(piece: string): unknown
  end(): unknown
}

function left(connection: Closing | AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if ('once' in connection) connection.once('close', resolve)
    else if (connection.aborted) resolve()
    else connection.addEventListener('abort', () => resolve())
  })
}

let made = 0

export class App {
  readonly clock = fakeClock(1_000_000_000_000)
  readonly options: AnyOptions
  /** Of a second middleware behind the first. */
  readonly behind: AnyOptions | undefined
  readonly limiter: Limiter
  /** What `onLimited` was told. */
  readonly limited: string[] = []
  /** What `onNearLimit` was told. */
  readonly near: string[] = []
  /** How often the key was asked for. */
  asked = 0
  /** What `refundWhen` was asked. */
  readonly outcomes: object[] = []
  /** What `settle` was asked. */
  readonly settled: object[] = []
  /** Ends the streams that are open. */
  readonly open = new Set<() => void>()
  /** How often the handler behind the limits was reached. */
  reached = 0

  constructor(setup: SetupName, headerOf: HeaderOf) {
    const { limits, limiterOptions = {}, choices = () => ({}), behind } = SETUPS[setup]
    this.limiter = createLimiter(limits as never, {
      name: `${setup}-${++made}`,
      clock: this.clock,
      ...limiterOptions,
    }) as unknown as Limiter
    this.options = {
      limiter: this.limiter,
      key: (_native: unknown, http: { header(name: string): string | undefined }) => http.header('x-user') ?? 'nobody',
      onLimited: (_native: unknown, { outcome, policy }: { outcome: string; policy: string }) => this.limited.push(`${outcome} ${policy}`),
      onNearLimit: (_native: unknown, { remaining, limit }: { remaining: number; limit: number }) =>
        this.near.push(`${remaining} of ${limit}`),
      ...choices((native: unknown, name: string) => headerOf(native as never, name)),
    }
    if (this.options.limiter === undefined) this.options.limiterOptions = { name: `${setup}-${made}`, clock: this.clock }
    if (behind !== undefined) this.behind = { ...this.options, limiter: createLimiter(behind, { clock: this.clock }) }
    const { key, refundWhen, settle } = this.options
    if (typeof key === 'function') {
      this.options.key = (...request: unknown[]) => {
        this.asked += 1
        return key(...request)
      }
    }
    if (settle !== undefined) {
      this.options.settle = (outcome: object, native: unknown) => {
        this.settled.push(outcome)
        return settle(outcome, native)
      }
    }
    if (refundWhen !== undefined) {
      this.options.refundWhen = (outcome: object) => {
        this.outcomes.push(outcome)
        return refundWhen(outcome)
      }
    }
  }

  /**
   * The handler behind the limits: answers with the status it is asked for, and what it was told of
   * the decision. If it is asked to hold the request, it does so until the client has left; if it
   * is asked to linger, until it is told to end, whether the client has left or not. It settles the
   * decision if it is asked to.
   */
  async handle(
    header: (name: string) => string | undefined | null,
    decision: { allowed: boolean; remaining: number; policy: string; settle(cost: never): unknown } | undefined,
    connection: Closing | AbortSignal,
  ): Promise<Answered> {
    this.reached += 1
    const cost = header('x-settle')
    if (cost) await decision?.settle(JSON.parse(cost) as never)
    if (header('x-stream') && 'once' in connection) return this.#stream(connection as Streaming)
    if (header('x-hold')) await left(connection)
    if (header('x-linger')) await new Promise<void>((resolve) => this.open.add(resolve))
    const { allowed, remaining, policy } = decision ?? {}
    return { status: Number(header('x-status') ?? 200), body: JSON.stringify({ allowed, remaining, policy }) }
  }

  /**
   * Answers on Node's response itself: one piece now, the rest when it is told to end. The
   * framework has nothing to send.
   */
  #stream(response: Streaming): Promise<never> {
    response.writeHead(200)
    response.write('piece')
    this.open.add(() => response.end())
    return new Promise(() => undefined)
  }

  /**
   * What the tests ask from outside; also over the wire, where the application runs in another
   * process.
   */
  do(command: string, argument: string): unknown {
    if (command === 'advance') return this.clock.advanceMs(Number(argument))
    if (command === 'waiting') return this.limiter.waiting()
    if (command === 'reached') return this.reached
    if (command === 'asked') return this.asked
    if (command === 'outcomes') return this.outcomes
    if (command === 'settled') return this.settled
    if (command === 'end-streams') return this.open.forEach((end) => void end())
    if (command === 'limited') return this.limited
    if (command === 'near') return this.near
    if (command === 'remaining') return this.limiter.peek(argument, 0).remaining
    if (command === 'parts') return Object.entries(this.limiter.peek(argument, 0).parts).map(([name, part]) => `${name} ${part.remaining}`)
    throw new Error(`no command ${command}`)
  }
}
