/** How a step comes to the driver: not at all if a refusal still holds (`known`), else in a batch, or in one for each of its groups. */
import type { Verdict } from '../../algorithms/decide.ts'
import { systemClock } from '../../clock/clock.ts'
import { checkLeases, hasOneKey, type Part, type Scope, type Step } from '../step.ts'
import { allAllowed, type Group, type OnFailure, type OnVerdicts, type StoreDriver } from '../store.ts'
import { acrossGroups } from './across-groups.ts'
import { Batches } from './batches.ts'
import { type DenialBounds, Denials } from './denials.ts'

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

  /** What a step would be answered, if a refusal still holds. */
  known(step: Step): Verdict[] | undefined {
    const denials = this.#denials.get(step.scope.name)
    return denials === undefined || denials.isEmpty ? undefined : denials.answer(step, systemClock.nowUs())
  }

  /** Has the driver decide a step, which has parts of its own, and calls one of the two, once. */
  submit(step: Step, onVerdicts: OnVerdicts, onFailure: OnFailure): void {
    const denials = this.#denials.get(step.scope.name)
    if (denials === undefined) this.#decide(step, onVerdicts, onFailure)
    else this.#decideAndNote(step, denials, onVerdicts, onFailure)
  }

  #decideAndNote(step: Step, denials: Denials, onVerdicts: OnVerdicts, onFailure: OnFailure): void {
    const sentUs = systemClock.nowUs()
    const grants = denials.sent(step)
    this.#decide(
      step,
      (verdicts) => {
        if (allAllowed(verdicts) || step.op === 'charge' || step.op === 'settle') denials.granted(step)
        else denials.refused(step, verdicts, grants, sentUs, systemClock.nowUs())
        onVerdicts(verdicts)
      },
      (error) => {
        denials.granted(step)
        onFailure(error)
      },
    )
  }

  #decide(step: Step, onVerdicts: OnVerdicts, onFailure: OnFailure): void {
    let group: Group
    let places: readonly (readonly number[])[] | undefined
    try {
      group = this.#driver.groupOf?.(step.scope, step.parts[0] as Part)
      if (group !== undefined && !hasOneKey(step)) places = this.#placesByGroup(step)
    } catch (error) {
      onFailure(error)
      return
    }
    if (places === undefined || places.length === 1) this.#batches.run(step, group, onVerdicts, onFailure)
    else acrossGroups(step, places, (each) => this.#decided(each)).then(onVerdicts, onFailure)
  }

  #decided(step: Step): Promise<Parameters<OnVerdicts>[0]> {
    return new Promise((resolve, reject) => this.#decide(step, resolve, reject))
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
