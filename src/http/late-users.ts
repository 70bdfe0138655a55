/**
 * Users that become known only after they were counted by something else, as where a hook or a
 * guard that runs later signs them in. The first few requests without a user are looked at again
 * when their responses have ended.
 */
import type { AnyRequest } from './request.ts'
import { explainOnce } from './warnings.ts'

/** How many requests are looked at: if users come late, they do from the first on. */
const MAX_LOOKS = 100

/** The key function of `byUser`, as this file needs it. */
export interface UserLook {
  /** Whether the request had no user when it was counted, and has one now. */
  cameLate(native: AnyRequest): boolean
}

/** By key function. */
export const userLooks = new WeakMap<object, UserLook>()

export class LateUsers {
  readonly #looks: readonly UserLook[]
  #left: number

  constructor(keyFunctions: readonly object[]) {
    this.#looks = keyFunctions.flatMap((keyOf) => userLooks.get(keyOf) ?? [])
    this.#left = this.#looks.length === 0 ? 0 : MAX_LOOKS
  }

  get isAtWork(): boolean {
    return this.#left > 0
  }

  look(native: AnyRequest): void {
    if (this.#left === 0) return
    this.#left -= 1
    if (!this.#looks.some((look) => look.cameLate(native))) return
    this.#left = 0
    explainOnce('SLUICE_USER_CAME_LATE')
  }
}
