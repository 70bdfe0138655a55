/** Plays a tape to a store, step by step, and compares what it answers and holds. */

import type { StateFields } from '../../src/algorithms/algorithm.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { inspectKey } from '../../src/stores/redis/inspect.ts'
import { redisKey } from '../../src/stores/redis/keys.ts'
import type { Failures, Scope, SyncStore } from '../../src/stores/store.ts'
import { Opened } from '../support/opened.ts'
import type { TestRedis } from '../support/redis-client.ts'
import { compare, type Recorded, type ShownState, shownFields, stepFor } from './tape.ts'

/** What memory and shared memory have for looking. */
export interface Inspectable extends SyncStore {
  inspect(limiter: string, limit: string, key: string): StateFields | undefined
}

/** `held`: the store that is looked at afterwards, the same or another on the same memory. */
export function playSync(store: SyncStore, held: Inspectable, tape: readonly Recorded[], limiter: string, key: string): void {
  const opened = new Opened(store)
  for (const recorded of tape) {
    const answers = opened.apply(stepFor(recorded))
    // Another store looks with the eyes of a limiter of its own.
    if (held !== store) held.open(recorded.step.scope, () => 0)
    compare(recorded, answers, heldIn(held, recorded.step.scope, limiter, key))
  }
  opened.close()
}

function heldIn(store: Inspectable, { limits }: Scope, limiter: string, key: string): Pick<ShownState, 'fields'>[] {
  return limits.map(({ name }) => ({ fields: shownFields(store.inspect(limiter, name, key)) }))
}

/** Ordinary takes are not told, all else is. Answers how many were not. */
export function playUntold(store: Inspectable, tape: readonly Recorded[], limiter: string, key: string): number {
  const opened = new Opened(store)
  let untold = 0
  for (const recorded of tape) {
    const { step, verdicts, call } = recorded
    const isOrdinary = step.op === 'take' && step.aheadUs < 0
    const granted = isOrdinary ? opened.isGranted(step) : undefined
    const answers = granted === undefined ? opened.apply(stepFor(recorded)) : verdicts
    compare(recorded, answers, heldIn(store, step.scope, limiter, key))
    if (granted === undefined) continue
    untold += 1
    if (granted !== verdicts.every(({ outcome }) => outcome === 'allowed'))
      throw new Error(`untold it is ${granted}: ${JSON.stringify(call)}`)
  }
  opened.close()
  return untold
}

/**
 * The next step is sent when the one before is answered and its states are read, the way
 * `sluice inspect` does.
 */
export async function playRedis(
  client: TestRedis,
  prefix: string,
  tape: readonly Recorded[],
  limiter: string,
  key: string,
): Promise<number> {
  const store = redisStore(client, { prefix })
  const place = redisKey({ prefix, hashTag: undefined }, limiter, key)
  for (const recorded of tape) {
    const step = stepFor(recorded)
    const [failure] = (await store.driver.apply([step])) as Failures
    if (failure !== undefined) throw failure
    const answers = step.op === 'forget' ? [] : step.parts.map(({ verdict }) => ({ ...verdict }))
    const inspected = await inspectKey(client, place)
    const states = recorded.step.scope.limits.map(({ name }, k) => {
      const found = inspected.find(({ policy = 'default' }) => policy === name)
      // Where a key has several states, those that are idle are dropped when another is written.
      const held = recorded.held[k] as ShownState
      if (found === undefined && held.isIdle && recorded.held.length > 1) return held
      return { fields: shownFields(found?.state), numbers: found?.numbers }
    })
    compare(recorded, answers, states)
  }
  return tape.length
}
