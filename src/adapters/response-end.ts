/**
 * When a `Response` has been sent. A handler is done when it has made one, but its body may go on
 * for as long as a stream does.
 */
import type { Entry } from '../http/entry.ts'
import { CLIENT_LEFT, type HttpOutcome } from '../http/request.ts'
import type { FetchRequest, FetchResponse } from './fetch-request.ts'
import { signalOf } from './fetch-request.ts'

type Leave = (outcome: HttpOutcome) => unknown

/** What Workers, Vercel and Netlify hand to a handler beside its request. */
export interface Lifetime {
  waitUntil(promise: Promise<unknown>): void
}

/**
 * A runtime that ends what a request has begun when its response is sent is asked to wait until the
 * store has been told how it ended.
 */
export function outliving(leave: Entry['leave'], lifetime: Lifetime | undefined): Entry['leave'] {
  if (leave === undefined || lifetime === undefined) return leave
  let done = (_left: unknown) => {}
  lifetime.waitUntil(new Promise((resolve) => (done = resolve)))
  return (outcome) => done(leave(outcome))
}

/**
 * Returns what is to be sent instead: the same with a body that tells of its end. At once, where
 * there is no body to wait for.
 */
export function leaveWhenSent<Res extends FetchResponse>(answered: Res, request: FetchRequest, leave: Leave): Res {
  const whole = answered as unknown as Response
  const { status } = answered
  let isOver = false
  const ended = (aborted: boolean) => {
    if (!isOver) leave({ status, aborted })
    isOver = true
  }
  if (signalOf(request)?.aborted) leave({ status: CLIENT_LEFT, aborted: true })
  // The body of an answer to HEAD is never read.
  else if (whole.body == null || whole.bodyUsed || request.method === 'HEAD') ended(false)
  else return new Response(telling(whole.body, ended), whole) as unknown as Res
  return answered
}

/** The same bytes, read no sooner than they are wanted. */
function telling(body: ReadableStream<Uint8Array>, ended: (aborted: boolean) => void): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (!done) return controller.enqueue(value)
          ended(false)
          controller.close()
        } catch (error) {
          ended(true)
          controller.error(error)
        }
      },
      cancel(reason) {
        ended(true)
        return reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
