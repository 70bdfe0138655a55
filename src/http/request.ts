import { SluiceError, shown } from '../errors.ts'

/**
 * The parts of a request that the HTTP layer needs, whatever framework it came through. Adapters
 * make these.
 */
export interface HttpRequest {
  /**
   * The other end of the socket as the runtime tells it; undefined where there is none, or where it
   * is unknown.
   */
  readonly address: string | undefined
  /**
   * The client's address as the framework finds it by its own setting for proxies; undefined where
   * it has none, or where that is off.
   */
  readonly clientAddress?: string | undefined
  /**
   * Its route as the application wrote it down, such as `GET /users/:id`; undefined where the
   * framework has none, or does not know it yet.
   */
  readonly route?: string | undefined
  /** Whether its client is known to have left: then there is no one to answer. */
  readonly hasLeft?: boolean
  /**
   * The value of a header field, its name in lower case. Several lines of it are joined with
   * commas.
   */
  header(name: string): string | undefined
}

/** Thrown where a request cannot be counted any more, because its client has left. */
export class ClientLeft extends Error {}

/** The status in logs of servers for a client that left before it was answered. */
export const CLIENT_LEFT = 499
/** The status of a request whose connection became a WebSocket. */
export const SWITCHING_PROTOCOLS = 101

/** How a response ended. */
export interface HttpOutcome {
  /** 499 if the client left before anything was sent, 101 of a WebSocket that has closed. */
  readonly status: number
  /** Whether the client left before the response was sent in full. */
  readonly aborted: boolean
}

export type MaybePromise<T> = T | PromiseLike<T>

/**
 * Goes on at once with what is known at once: a promise for each request would cost more than the
 * decision.
 */
export function whenKnown<T, R>(value: MaybePromise<T>, next: (value: T) => R | Promise<R>): R | Promise<R> {
  return isPromise(value) ? Promise.resolve(value).then(next) : next(value)
}

export function isPromise<T>(value: MaybePromise<T>): value is PromiseLike<T> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}

/** No code waits for these promises any more: a rejection must not end the process. */
export function disregard(...values: unknown[]): void {
  for (const value of values) if (isPromise(value)) value.then(undefined, () => {})
}

/**
 * Frameworks take a falsy error, and some texts, for leave to go on: what is thrown is always an
 * error.
 */
export function asError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown
  return new SluiceError('CONFIG', `what was given to rateLimit threw ${shown(thrown)}, which is no error`, { cause: thrown })
}

/**
 * A framework's own request, of which nothing is known here. A parameter of a function that is
 * annotated gets its type checked.
 */
// biome-ignore lint/suspicious/noExplicitAny: `unknown` would make every function of a request wrong
export type AnyRequest = any
