/** Set-ups that look right and limit nothing, or less than they say. Each is told once. */
import { warnOnce } from '../errors.ts'
import type { MemoryStore } from '../stores/memory/memory-store.ts'
import type { Scope, Store } from '../stores/store.ts'
import { isOneOfSeveral } from './processes.ts'

export const MISUSE = {
  SLUICE_LIMITER_PER_REQUEST:
    'A limiter is made for each call, so that nothing is ever limited. Make it once, outside of the handler: one limiter holds any number of keys.',
  SLUICE_SAME_NAME:
    'Two limiters have one name: in a store that they share they share their state. Give each its own name, or use one limiter in both places.',
  SLUICE_MEMORY_PER_PROCESS:
    'Limits are kept in the memory of one of several processes: together they admit as many times the limit. Use a store that they share: sqliteStore(path) of sluice/sqlite on one machine, redisStore(client) on several.',
} as const

/** A limiter that was made, as far as it is looked at here. */
interface Made {
  readonly name: string
  readonly store: Store
  scope(): Scope
}

/** So many, because tests make limiters and use them at once. */
const MADE_AND_USED_AT_ONCE = 10

let madeAndUsedAtOnce = 0

export function noticeMade(limiter: Made, options: { readonly store?: unknown; readonly clock?: unknown }): void {
  const { store } = limiter
  noticeStore(store)
  if (options.store !== undefined) noticeName(limiter)
  else if (options.clock === undefined) queueMicrotask(() => noticeUse(store as MemoryStore))
}

/** At the end of the turn in which it was made. */
function noticeUse(store: MemoryStore): void {
  if (store.size === 0) return
  madeAndUsedAtOnce += 1
  if (madeAndUsedAtOnce === MADE_AND_USED_AT_ONCE) warnOnce('SLUICE_LIMITER_PER_REQUEST', MISUSE.SLUICE_LIMITER_PER_REQUEST)
}

/** A memory of this process alone, though there are others that serve the same. */
export function noticeStore(store: Store): void {
  if (store.mode === 'sync' && !store.shared && isOneOfSeveral()) warnOnce('SLUICE_MEMORY_PER_PROCESS', MISUSE.SLUICE_MEMORY_PER_PROCESS)
}

/** The open limiters of a store by name; not held on to. */
const named = new WeakMap<Store, Map<string, WeakRef<Made>>>()

/** Other numbers, because the same ones in two modules may well be meant. */
function noticeName(limiter: Made): void {
  // Cloudflare Workers have it since the compatibility date of 2025-05-05.
  if (typeof WeakRef === 'undefined') return
  const { name, store } = limiter
  const inStore = named.get(store) ?? new Map<string, WeakRef<Made>>()
  const known = inStore.get(name)?.deref()
  if (known !== undefined && numbersOf(known) !== numbersOf(limiter)) warnOnce('SLUICE_SAME_NAME', `${MISUSE.SLUICE_SAME_NAME} (${name})`)
  named.set(store, inStore.set(name, new WeakRef(limiter)))
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
