/** Set-ups that look right and limit nothing, or less than they say. Each is told once. */
import { warnOnce } from '../errors.ts'
import type { Scope, Store } from '../stores/store.ts'
import { isOneOfSeveral } from './processes.ts'

export const MISUSE = {
  SLUICE_LIMITER_PER_REQUEST:
    'A limiter is made for each call, so that nothing is ever limited. Make it once, outside of the handler: one limiter holds any number of keys.',
  SLUICE_SAME_NAME:
    'Two open limiters of one name and one store have other numbers, and share their states. Give each its own name, or use one and update() it, or close() the first.',
  SLUICE_MEMORY_PER_PROCESS:
    'Limits are kept in the memory of one of several processes: together they admit as many times the limit. Use a store that they share: sqliteStore(path) of sluice/sqlite on one machine, redisStore(client) on several. If each process shall have its own, say store: memoryStore().',
} as const

/** A limiter that was made, as far as it is looked at here. */
interface Made {
  readonly name: string
  readonly store: Store
  scope(): Scope
}

interface Options {
  readonly store?: unknown
  readonly clock?: unknown
}

/** What is made with a clock of its own is a test. */
export function noticeMade(limiter: Made, options: Options): void {
  if (options.store !== undefined && options.clock === undefined) noticeName(limiter)
  // What runs at once may well be limited for each process, and for each batch of jobs.
  if (!limiter.scope().limits.some(({ rule }) => rule.algorithm.untilReleased)) noticeMemory(limiter.store, options)
}

/** `options`: those of the limiter, or limiters, that the store is for. */
export function noticeMemory(store: Store, options: Options): void {
  if (store.mode !== 'sync' || store.shared) return
  if (options.store === undefined) noticeProcess()
  if (options.clock === undefined && typeof WeakRef !== 'undefined') noticeDropped(store)
}

let isLookedAt = false

function noticeProcess(): void {
  if (isLookedAt) return
  isLookedAt = true
  if (isOneOfSeveral()) warnOnce('SLUICE_MEMORY_PER_PROCESS', MISUSE.SLUICE_MEMORY_PER_PROCESS)
}

const MOST_LOOKED_AT = 100
/** Calls that are under way hold theirs. */
const MOST_HELD = 50
/** After so many more: not each time, and not long after they were collected. */
const LOOKED_AT_EVERY = 10
/** The last memories that were made, in a ring. */
const memories: WeakRef<Store>[] = []
let next = 0

/** A handler that makes a limiter for each call leaves memories that nothing holds any more. */
function noticeDropped(store: Store): void {
  if (next % LOOKED_AT_EVERY === 0 && memories.length === MOST_LOOKED_AT) {
    const held = memories.filter((memory) => memory.deref() !== undefined).length
    if (held <= MOST_HELD) warnOnce('SLUICE_LIMITER_PER_REQUEST', MISUSE.SLUICE_LIMITER_PER_REQUEST)
  }
  memories[next] = new WeakRef(store)
  next = (next + 1) % MOST_LOOKED_AT
}

/** The open limiters of a store by name; not held on to. */
const named = new WeakMap<Store, Map<string, WeakRef<Made>>>()
let hasToldName = false

/** Other numbers, because the same ones in two modules may well be meant. */
function noticeName(limiter: Made): void {
  // Cloudflare Workers have it since the compatibility date of 2025-05-05.
  if (hasToldName || typeof WeakRef === 'undefined') return
  const { name, store } = limiter
  const inStore = named.get(store) ?? new Map<string, WeakRef<Made>>()
  const known = inStore.get(name)?.deref()
  if (known !== undefined && numbersOf(known) !== numbersOf(limiter)) {
    hasToldName = true
    warnOnce('SLUICE_SAME_NAME', `${MISUSE.SLUICE_SAME_NAME} (${name})`)
  }
  forgetDropped(inStore)
  named.set(store, inStore.set(name, new WeakRef(limiter)))
}

/** Looks at the two oldest: more than one, so that it shrinks faster than it grows. */
function forgetDropped(inStore: Map<string, WeakRef<Made>>): void {
  for (let k = 0; k < 2; k++) {
    const [name, limiter] = inStore.entries().next().value ?? []
    if (name === undefined) return
    inStore.delete(name)
    if (limiter?.deref() !== undefined) inStore.set(name, limiter)
  }
}

function numbersOf(limiter: Made): string {
  return limiter
    .scope()
    .limits.map(({ name, rule }) => `${name} ${rule.algorithm.type} ${rule.numbers}`)
    .join()
}

export function noticeClosed(limiter: Made): void {
  const inStore = named.get(limiter.store)
  if (inStore?.get(limiter.name)?.deref() === limiter) inStore.delete(limiter.name)
}
