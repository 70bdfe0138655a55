/** What is held until it is released: `/v1/release` and `/v1/renew`. */
import type { Limiters } from '../running/limiters.ts'
import { permitIn } from '../running/permit-text.ts'
import { type Entrusted, shown } from '../sluice.ts'
import { limiterNamed, onlyFields, type Task } from './input.ts'
import { BadRequest } from './problem.ts'

export function permitTask(limiters: Limiters, body: unknown, what: 'release' | 'renew'): Task<Entrusted> {
  const { permit } = onlyFields(body, ['permit'], what)
  const held = permitIn(permit)
  if (held === undefined)
    throw new BadRequest(400, 'PERMIT', `permit ${shown(permit)} must be the permit of a decision, as it was answered`)
  const limiter = limiterNamed(limiters, held.limiter)
  limiter.checkLent(held.lent)
  return { limiter, request: held.lent }
}
