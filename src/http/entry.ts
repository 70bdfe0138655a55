/** The answer of a gate about a request, which adapters carry out. */
import type { Hold } from './hold.ts'
import type { Refusal } from './refusal.ts'
import { CLIENT_LEFT, type HttpOutcome, type MaybePromise } from './request.ts'
import type { HttpDecision } from './settling.ts'

export interface Entry {
  /** Undefined if the request was not limited (`skip`). */
  readonly decision: HttpDecision | undefined
  /** For the response of an admitted request: name, value, name, value ... */
  readonly headers: readonly string[]
  /** The answer instead of going on. */
  readonly refusal: Refusal | undefined
  /** The client left while it waited: there is no one to answer. */
  readonly gone: boolean
  /**
   * Called with the end of the response; undefined if no option needs it. A promise, which never
   * fails, where a store has to be told.
   */
  readonly leave: ((outcome: HttpOutcome) => MaybePromise<unknown>) | undefined
  /**
   * The place that the request holds: to be told what the handler returns, where the framework
   * hands that out.
   */
  readonly hold: Hold | undefined
}

export const NO_HEADERS: readonly string[] = []
/** Let through, and not counted. */
export const PASSED: Entry = {
  decision: undefined,
  headers: NO_HEADERS,
  refusal: undefined,
  gone: false,
  leave: undefined,
  hold: undefined,
}
export const GONE: Entry = { ...PASSED, gone: true }

export function admitted(decision: HttpDecision, headers: readonly string[], leave: Entry['leave'], hold: Entry['hold']): Entry {
  return { decision, headers, refusal: undefined, gone: false, leave, hold }
}

export function refused(decision: HttpDecision, refusal: Refusal): Entry {
  return { decision, headers: NO_HEADERS, refusal, gone: false, leave: undefined, hold: undefined }
}

/** The client left while it was found out whether to let it in. */
export function gone({ decision, leave }: Entry): Entry {
  leave?.({ status: CLIENT_LEFT, aborted: true })
  return { ...GONE, decision }
}
