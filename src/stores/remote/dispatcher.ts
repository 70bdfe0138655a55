/** How a step comes to the driver: not at all if a refusal still holds (`known`), else in a batch, or in one for each of its groups. */
import type { Verdict } from '../../algorithms/decide.ts'
import { systemClock } from '../../clock/clock.ts'
import { checkLeases, hasOneKey, type Part, type Scope, type Step } from '../step.ts'
import { type Asker, allAllowed, type Group, type StoreDriver } from '../store.ts'
import { acrossGroups } from './across-groups.ts'
import { Batches } from './batches.ts'
import { type DenialBounds, Denials } from './denials.ts'

/** Notes an answer in the denial cache before it tells the asker. */
class NotedAsker implements Asker {
  declare readonly step: Step
  declare readonly denials: Denials
  declare readonly asker: Asker
  declare readonly sentUs: number
  declare readonly grants: number

  constructor(step: Step, denials: Denials, asker: Asker) {
    this.step = step
    this.denials = denials
    this.asker = asker
    this.sentUs = systemClock.nowUs()
    this.grants = denials.sent(step)
  }

  answered(verdicts: readonly Verdict[]): void {
    const { step, denials } = this
    if (allAllowed(verdicts) || step.op === 'charge' || step.op === 'settle') denials.granted(step)
    else denials.refused(step, verdicts, this.grants, this.sentUs, systemClock.nowUs())
    this.asker.answered(verdicts)
  }

  failed(error: unknown): void {
    this.denials.granted(this.step)
    this.asker.failed(error)
  }
}

export class Dispatcher {
  readonly #driver: StoreDriver
  readonly #batches: Batches
  readonly #bounds: DenialBounds | undefined
  /** By the name of the limiter, as long as one of that name is open. */
  readonly #denials = new Map<string, Denials>()

  constructor(driver: StoreDriver, maxBatch: number, bounds: DenialBounds | undefined) {
    this.#driver = driver
    this.#batches = new Batches(driver, maxBatch)
    this.#bounds = bounds
  }

  open(scope: Scope): void {
    checkLeases(scope, 'on a remote store')
    this.#driver.open?.(scope)
    if (this.#bounds === undefined) return
    const denials = this.#denials.get(scope.name) ?? new Denials(this.#bounds)
    this.#denials.set(scope.name, denials)
    denials.users += 1
  }

  release(scope: Scope): void {
    this.#driver.release?.(scope)
    const denials = this.#denials.get(scope.name)
    if (denials === undefined) return
    denials.users -= 1
    if (denials.users === 0) this.#denials.delete(scope.name)
  }

  /** The answer to a step, if a refusal still holds. */
  known(step: Step): Verdict[] | undefined {
    const denials = this.#denials.get(step.scope.name)
    return denials === undefined || denials.isEmpty ? undefined : denials.answer(step, systemClock.nowUs())
  }

  /** Has the driver decide a step, which has parts of its own, and tells the asker. */
  submit(step: Step, asker: Asker): void {
    const denials = this.#denials.get(step.scope.name)
    this.#decide(step, denials === undefined ? asker : new NotedAsker(step, denials, asker))
  }

  #decide(step: Step, asker: Asker): void {
    let group: Group
    let places: readonly (readonly number[])[] | undefined
    try {
      group = this.#driver.groupOf?.(step.scope, step.parts[0] as Part)
      if (group !== undefined && !hasOneKey(step)) places = this.#placesByGroup(step)
    } catch (error) {
      asker.failed(error)
      return
    }
    if (places === undefined || places.length === 1) this.#batches.run(step, group, asker)
    else {
      acrossGroups(step, places, (each) => this.#decided(each)).then(
        (verdicts) => asker.answered(verdicts),
        (error) => asker.failed(error),
      )
    }
  }

  #decided(step: Step): Promise<readonly Verdict[]> {
    return new Promise((resolve, reject) => this.#decide(step, { answered: resolve, failed: reject }))
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
