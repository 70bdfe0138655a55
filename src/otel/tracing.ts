/**
 * Decisions as spans: a request that was refused, or that waited, shows it in its trace. A span is
 * made when the answer is there, within the span that is active then; outside of a trace there is
 * none. Never with a key: traces are kept for long, and keys may be personal data.
 */
import { type Attributes, type Span, SpanStatusCode, type Tracer, trace } from '@opentelemetry/api'
import { SluiceError } from '../errors.ts'
import type { DecisionEvent, Listener } from '../limiter/events.ts'

export function tracing(tracer: Tracer): Listener {
  return {
    onDecision(event) {
      if (!isTraced()) return
      const endMs = Date.now()
      const span = tracer.startSpan(`${event.verb} ${event.limiter}`, { startTime: endMs - event.tookMs, attributes: attributesOf(event) })
      span.end(endMs)
    },
    onFailure({ limiter, error }) {
      if (!isTraced()) return
      const span = tracer.startSpan(`decide ${limiter}`, { attributes: { 'sluice.limiter': limiter } })
      fail(span, error)
      span.end()
    },
  }
}

function isTraced(): boolean {
  return trace.getActiveSpan()?.isRecording() ?? false
}

function attributesOf({ limiter, verb, cost, plan, decision, tookMs }: DecisionEvent): Attributes {
  const { outcome, policy, limit, remaining, retryAfterMs, degraded } = decision
  return {
    'sluice.limiter': limiter,
    'sluice.verb': verb,
    'sluice.result': outcome,
    'sluice.policy': policy,
    'sluice.limit': limit,
    'sluice.remaining': remaining,
    'sluice.degraded': degraded,
    ...(decision.allowed ? {} : { 'sluice.reason': decision.reason }),
    ...(typeof cost === 'number' ? { 'sluice.cost': cost } : {}),
    ...(plan === undefined ? {} : { 'sluice.plan': plan }),
    ...(outcome === 'limited' ? { 'sluice.retry_after_ms': retryAfterMs } : {}),
    ...(verb === 'acquire' ? { 'sluice.waited_ms': tookMs } : {}),
  }
}

/** A refusal is an answer. A call without an answer is an error. */
function fail(span: Span, error: unknown): void {
  const { message } = error as Error
  span.setAttribute('error.type', error instanceof SluiceError ? error.code : 'Error')
  span.setStatus({ code: SpanStatusCode.ERROR, message: String(message) })
}
