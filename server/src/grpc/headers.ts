/**
 * The headers that Envoy adds for its client. There is room for one limit: of the descriptors that
 * were counted the one that binds, which is the longest wait when refused and the fewest left when
 * not. One in shadow is not told of.
 */
import type { Answer } from '../running/request.ts'
import { type Decision, type HeaderStyle, headerWriter, type Scope, secondsOf } from '../sluice.ts'
import type { Header } from './messages.ts'

/** A descriptor that was counted. */
export interface Counted {
  readonly answer: Answer
  /** Whether the request passes, as far as this descriptor is concerned. */
  readonly passes: boolean
  readonly scope: Scope
}

/** Each keeps the texts that it has made. */
const WRITERS = {
  'draft-11': headerWriter('draft-11'),
  'draft-7': headerWriter('draft-7'),
  'draft-6': headerWriter('draft-6'),
  legacy: headerWriter('legacy'),
  none: undefined,
}

export function headersOf(style: HeaderStyle | 'none', counted: readonly Counted[]): Header[] {
  const writer = WRITERS[style]
  if (writer === undefined) return []
  const binding = counted.filter(({ answer }) => !answer.shadow).sort(whichBinds)[0]
  if (binding === undefined) return []
  const { answer, passes, scope } = binding
  const fields = writer(answer as Decision, scope, '')
  const headers = fields.flatMap((key, k) => (k % 2 === 0 ? [{ key, value: fields[k + 1] as string }] : []))
  return passes || answer.retryAfterMs === Number.POSITIVE_INFINITY ? headers : [...headers, retryAfter(answer)]
}

function whichBinds({ answer: a }: Counted, { answer: b }: Counted): number {
  return b.retryAfterMs - a.retryAfterMs || a.remaining - b.remaining
}

/** A second at least: 0 would be an invitation to come back at once. */
function retryAfter({ retryAfterMs }: Answer): Header {
  return { key: 'retry-after', value: `${Math.max(1, secondsOf(retryAfterMs))}` }
}
