/**
 * How a step comes to the driver: not at all if a refusal still holds (`known`), else in a batch,
 * or in one for each of its groups.
 */
import type { Verdict } from '../../algorithms/decide.ts'
import { checkLeases, hasOneKey, type Part, type Scope, type Step } from '../step.ts'
import type { Group, StoreDriver } from '../store.ts'
import { acrossGroups } from './across-groups.ts'
import { type Asker, Batches } from './batches.ts'
import { type DenialBounds, DenialCache } from './denials.ts'

export class Dispatcher {
  readonly #driver: StoreDriver
  readonly #batches: Batches
  readonly #denials: DenialCache | undefined

  constructor(driver: StoreDriver, maxBatch: number, bounds: DenialBounds | undefined) {
    this.#driver = driver
    this.#denials = bounds && new DenialCache(bounds)
    this.#batches = new Batches(driver, maxBatch, this.#denials)
  }

  open(scope: Scope): void {
    checkLeases(scope, 'on a remote store')
    this.#driver.open?.(scope)
    this.#denials?.open(scope)
  }

  release(scope: Scope): void {
    this.#driver.release?.(scope)
    this.#denials?.release(scope)
  }

  /** The answer to a step, if a refusal still holds. */
  known(step: Step): Verdict[] | undefined {
    return this.#denials?.known(step)
  }

  /** Has the driver decide a step, which has parts of its own, and tells the asker. */
  submit(asker: Asker): void {
    const { step } = asker
    this.#denials?.asked(step)
    let group: Group
    let places: readonly (readonly number[])[] | undefined
    try {
      group = this.#driver.groupOf?.(step.scope, step.parts[0] as Part)
      if (group !== undefined && !hasOneKey(step)) places = this.#placesByGroup(step)
    } catch (error) {
      asker.failed(error)
      return
    }
    if (places === undefined || places.length === 1) this.#batches.run(asker, group)
    else {
      acrossGroups(step, places, (each) => this.#decided(each)).then(
        (verdicts) => asker.answered(verdicts),
        (error) => asker.failed(error),
      )
    }
  }

  #decided(step: Step): Promise<readonly Verdict[]> {
    return new Promise((answered, failed) => this.submit({ step, answered, failed }))
  }

  /** For each group the places of its parts. */
  #placesByGroup({ scope, parts }: Step): number[][] {
    const groups = new Map<Group, number[]>()
    parts.forEach((part, k) => {
      const group = this.#driver.groupOf?.(scope, part)
      const places = groups.get(group)
      if (places === undefined) groups.set(group, [k])
      else places.push(k)
    })
    return [...groups.values()]
  }
}
