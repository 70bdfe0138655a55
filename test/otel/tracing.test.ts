/** Decisions as spans of the real OpenTelemetry SDK, each in the trace of its own caller. */
import { context, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import { BasicTracerProvider, InMemorySpanExporter, type ReadableSpan, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, expect, inject, test } from 'vitest'
import { createLimiter, gcra } from '../../src/index.ts'
import { type ObservedLimiter, observe } from '../../src/otel/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'

const exporter = new InMemorySpanExporter()
const tracer = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).getTracer('test')

beforeAll(() => void context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable()))
afterAll(() => context.disable())
afterEach(() => exporter.reset())

const limit = gcra({ rate: '1/s', burst: 2 })
const traced = (limiter: ObservedLimiter) => observe(limiter, { tracer, meter: new MeterProvider().getMeter('test') })

/** As a request: a span around what is done. */
async function within<T>(name: string, act: () => T | Promise<T>): Promise<T> {
  const span = tracer.startSpan(name)
  try {
    return await context.with(trace.setSpan(context.active(), span), act)
  } finally {
    span.end()
  }
}

const spans = () => exporter.getFinishedSpans()
const spanOf = (name: string) => spans().find((span) => span.name === name) as ReadableSpan
const under = (name: string) => spans().filter(({ parentSpanContext }) => parentSpanContext?.spanId === spanOf(name).spanContext().spanId)
const msOf = ({ duration: [seconds, nanos] }: ReadableSpan) => seconds * 1000 + nanos / 1e6

test('a decision is a span within that of its request, without its key', async () => {
  const limiter = createLimiter(limit, { name: 'api', clock: fakeClock(1_000_000), plans: { pro: gcra({ rate: '1/s', burst: 9 }) } })
  const stop = traced(limiter)
  await within('GET /', () => {
    limiter.consume('secret', 2)
    limiter.consume('secret', 1, { plan: 'pro' })
    limiter.tryAcquire('secret')
  })
  const all = { 'sluice.limiter': 'api', 'sluice.policy': 'default', 'sluice.degraded': false }
  expect(under('GET /').map(({ name, attributes, status }) => ({ name, attributes, code: status.code }))).toEqual([
    {
      name: 'consume api',
      attributes: {
        ...all,
        'sluice.verb': 'consume',
        'sluice.result': 'allowed',
        'sluice.limit': 2,
        'sluice.remaining': 0,
        'sluice.cost': 2,
      },
      code: SpanStatusCode.UNSET,
    },
    {
      name: 'consume api',
      attributes: {
        ...all,
        'sluice.verb': 'consume',
        'sluice.result': 'allowed',
        'sluice.limit': 9,
        'sluice.remaining': 6,
        'sluice.cost': 1,
        'sluice.plan': 'pro',
      },
      code: SpanStatusCode.UNSET,
    },
    {
      name: 'tryAcquire api',
      attributes: {
        ...all,
        'sluice.verb': 'tryAcquire',
        'sluice.result': 'limited',
        'sluice.reason': 'limit',
        'sluice.limit': 2,
        'sluice.remaining': 0,
        'sluice.cost': 1,
        'sluice.retry_after_ms': 2000,
      },
      code: SpanStatusCode.UNSET,
    },
  ])
  expect(JSON.stringify(spans().map(({ name, attributes, status, events }) => [name, attributes, status, events]))).not.toContain('secret')
  stop()
  exporter.reset()
  await within('GET /', () => limiter.consume('secret'))
  expect(spans()).toHaveLength(1)
})

test('outside of a trace there are no spans', () => {
  const limiter = createLimiter(limit, { name: 'api', clock: fakeClock() })
  traced(limiter)
  limiter.consume('u1')
  expect(spans()).toEqual([])
})

test('a wait is as long as it was, each in the trace of its own caller', async () => {
  const clock = fakeClock(1_000_000)
  const limiter = createLimiter(limit, { name: 'api', clock })
  traced(limiter)
  limiter.consume('u1', 2)
  const waits = ['a', 'b'].map((name) => within(name, () => limiter.acquire('u1')))
  const refused = within('c', () => limiter.acquire('u1', { timeoutMs: 1 }).catch(() => undefined))
  clock.advanceMs(2_000)
  await Promise.all([...waits, refused])
  expect(under('a').map(msOf)).toEqual([1000])
  expect(under('b').map(({ name, attributes }) => [name, attributes['sluice.waited_ms']])).toEqual([['acquire api', 2000]])
  expect(under('c').map(({ attributes }) => attributes['sluice.result'])).toEqual(['limited'])
})

test('on Redis, too, where many decisions share a call, each is in the trace of its own caller', async () => {
  const client = new Redis(inject('redisPort'))
  const limiter = createLimiter(gcra({ rate: '1/s', burst: 50 }), { name: `trace-${process.pid}-${Date.now()}`, store: redisStore(client) })
  traced(limiter)
  const names = Array.from({ length: 20 }, (_, k) => `request ${k}`)
  await Promise.all(names.map((name, k) => within(name, () => limiter.consume('u1', 1 + (k % 3)))))
  expect(names.map((name) => under(name).map(({ attributes }) => attributes['sluice.cost']))).toEqual(names.map((_, k) => [1 + (k % 3)]))
  limiter.close()
  client.disconnect()
})

test('a call without an answer is an error in its trace', async () => {
  const client = new Redis(1, { lazyConnect: true, retryStrategy: () => null, maxRetriesPerRequest: 0 })
  client.on('error', () => undefined)
  const limiter = createLimiter(limit, { name: 'api', store: redisStore(client) })
  traced(limiter)
  await within('GET /', () => expect(limiter.consume('u1')).rejects.toMatchObject({ code: 'STORE' }))
  expect(under('GET /').map(({ name, status, attributes }) => [name, status.code, attributes['error.type']])).toEqual([
    ['decide api', SpanStatusCode.ERROR, 'STORE'],
  ])
  limiter.close()
})

test('a value that is no tracer is refused, and so is a misspelt option', () => {
  const limiter = createLimiter(limit, { name: 'api' })
  expect(() => observe(limiter, { tracer: 'api' as never })).toThrow('tracer "api" must be a tracer')
  expect(() => observe(limiter, { tracr: tracer } as never)).toThrow('observe "tracr" is not an option: it has meter, tracer')
})
