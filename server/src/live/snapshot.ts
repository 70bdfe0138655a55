/** An event of the live stream: the state of the service as one JSON text. */
import { titleOf } from '../config/config.ts'
import { entriesText } from '../grpc/find-rule.ts'
import type { Limiters } from '../running/limiters.ts'
import type { RunningLimiter } from '../running/running-limiter.ts'
import type { MemoryStore, Store } from '../sluice.ts'
import type { TopRefused } from './top-refused.ts'

/** Longer keys are cut: a screen has no room for them, and a hundred listeners none either. */
const MAX_KEY_LENGTH = 100

export interface Watched {
  readonly limiters: Limiters
  readonly store: Store
  readonly startedAtMs: number
  readonly refusals: { readonly top: TopRefused; readonly shown: number } | undefined
  nowMs(): number
}

/** Each call begins the longest waits anew. */
export function snapshot({ limiters, store, startedAtMs, refusals, nowMs }: Watched): string {
  return JSON.stringify({
    atMs: nowMs(),
    startedAtMs,
    limiters: [...limiters.all()].map((limiter) => told(limiter, store)),
    topRefused: refusals === undefined ? null : toldKeys(refusals.top, refusals.shown, limiters.titles()),
  })
}

function told({ config, tally, waiting, health }: RunningLimiter, store: Store) {
  const { results, shadowed, storeErrors, waits, longestWaitSeconds } = tally
  tally.longestWaitSeconds = 0
  return {
    name: titleOf(config),
    rule: config.rule ?? null,
    allowed: results.allowed,
    denied: results.limited + results.impossible - shadowed,
    shadowed,
    errors: storeErrors,
    waiting,
    waits: { count: waits.count, sumMs: milliseconds(waits.sum), maxMs: milliseconds(longestWaitSeconds) },
    store: health.state,
    keys: isMemory(store) ? Math.max(...Object.keys(config.limits).map((limit) => store.sizeOf(config.name, limit))) : null,
  }
}

/** Without a rest behind the microseconds. */
function milliseconds(seconds: number): number {
  return Math.round(seconds * 1e6) / 1e3
}

/** Of limiters that are still there. */
function toldKeys(top: TopRefused, shown: number, titles: ReadonlySet<string>) {
  const keys = [...top.keys()].filter(({ limiter }) => titles.has(limiter)).slice(0, shown)
  return keys.map(({ limiter, key, count, error }) => ({
    limiter,
    key: cut(isOfRule(limiter) ? entriesText(key) : key),
    count,
    atMost: error > 0,
  }))
}

/** No limiter of a file has such a name. */
function isOfRule(title: string): boolean {
  return title.includes(':')
}

function cut(key: string): string {
  return key.length <= MAX_KEY_LENGTH ? key : `${key.slice(0, MAX_KEY_LENGTH)}…`
}

function isMemory(store: Store): store is MemoryStore {
  return 'sizeOf' in store
}
