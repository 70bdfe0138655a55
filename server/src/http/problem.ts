/** Problems, in the form of RFC 9457. */
import { STATUS_CODES } from 'node:http'
import { InvalidRequest } from '../grpc/invalid-request.ts'
import { EXCEEDED, REDUCED, SluiceError, WaitError } from '../sluice.ts'

export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  /** In words, with the value that was wrong and the rule. */
  readonly detail: string
  /** For programs. */
  readonly code: string
  readonly 'violated-policies'?: readonly string[]
  readonly retryAfterMs?: number | null
}

/** Thrown by whatever reads a request. */
export class BadRequest extends Error {
  readonly status: number
  readonly code: string
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, code: string, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message)
    this.status = status
    this.code = code
    this.headers = headers
  }
}

export function problemOf(error: unknown): Problem {
  if (error instanceof BadRequest) return plain(error.status, error.code, error.message)
  if (error instanceof InvalidRequest) return plain(400, 'DESCRIPTORS', error.message)
  if (error instanceof WaitError) return refusedWait(error)
  if (error instanceof SluiceError) return ofLibrary(error)
  return plain(500, 'INTERNAL', 'the service failed: its log says why')
}

function plain(status: number, code: string, detail: string): Problem {
  return { type: 'about:blank', title: STATUS_CODES[status] ?? 'Error', status, detail, code }
}

/**
 * Details of a store (addresses, users, options of its client) are for the log, not for callers.
 */
export const NO_ANSWER = 'the store failed, and no policy decides in its place: the log of the service says why'

/** The store, and the end of a limiter, are nothing that a caller did. */
function ofLibrary({ code, message }: SluiceError): Problem {
  if (code === 'STORE' || code === 'UNSUPPORTED') return { ...REDUCED, status: 503, detail: NO_ANSWER, code: 'STORE' }
  if (code === 'CLOSED') return { ...REDUCED, status: 503, detail: message, code }
  return plain(400, code, message)
}

function refusedWait({ code, message, decision }: WaitError): Problem {
  const violated = Object.entries(decision?.parts ?? {}).filter(([, { outcome }]) => outcome !== 'allowed')
  return {
    ...EXCEEDED,
    status: 429,
    detail: message,
    code,
    'violated-policies': violated.map(([name]) => name),
    retryAfterMs: decision === undefined || decision.retryAfterMs === Number.POSITIVE_INFINITY ? null : decision.retryAfterMs,
  }
}
