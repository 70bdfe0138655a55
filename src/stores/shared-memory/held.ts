/**
 * What a thread that has ended held until it would release it. Walks over the whole table, and
 * releases whatever is noted as its own: in each chain by a swap like that of any step, so that
 * others see a key before or after that. This thread may have opened none of these limiters: the
 * catalog says what their limits are, and a record by which numbers it was written.
 */
import type { Format, Rule } from '../../algorithms/algorithm.ts'
import type { Cell } from '../../algorithms/decide.ts'
import { FORMATS } from '../../algorithms/list.ts'
import { type CatalogEntry, entriesIn } from './catalog.ts'
import type { Chain } from './chain.ts'
import { releaseAll } from './holders.ts'
import { type SharedMemory, TAG_BITS } from './layout.ts'
import { type RecordCopy, recordCopy } from './record.ts'

/** A limiter with limits that are held. */
interface HeldScope {
  readonly name: string
  readonly copy: RecordCopy
}

/** `nowUs`: by the clock of a limiter, by its name. */
export function releaseHeld(memory: SharedMemory, chain: Chain, thread: number, nowUs: (limiter: string) => number): void {
  const scopes = heldScopes(memory)
  if (scopes.size === 0) return
  const record = new Float64Array(memory.recordWords)
  for (let head = 0; head < memory.headCount; head++) while (hasChanged(memory.headAt(head)));

  /**
   * Releases what it holds of one key of a chain. True if there may be more: something was
   * released, or another thread was faster.
   */
  function hasChanged(headAt: number): boolean {
    chain.look(headAt)
    const { length, tags } = chain.seen
    for (let place = 0; place < length; place++) {
      const number = (tags[place] as number) >>> TAG_BITS
      const scope = scopes.get(number)
      if (scope !== undefined && (!chain.pick(place, record) || isReleased(place, number, scope))) return true
    }
    return !chain.isAsSeen()
  }

  function isReleased(place: number, number: number, { name, copy }: HeldScope): boolean {
    const cells = copy.cellsFor([])
    copy.loadOther(cells, record)
    for (const cell of cells) cell.changed = false
    const atUs = nowUs(name)
    if (!releaseAll((cells[0] as Cell).s, copy.holdersAt(cells), cells, thread, atUs)) return false
    chain.idleAtUs[0] = atUs + copy.idleInUs(cells, atUs, false)
    chain.put(place, number, copy.packed(cells))
    return true
  }
}

/** By their numbers. */
function heldScopes(memory: SharedMemory): Map<number, HeldScope> {
  const held = entriesIn(memory).filter(({ types }) => types.some((type) => formatNamed(type).algorithm.untilReleased))
  return new Map(held.map((entry) => [entry.number, { name: entry.name, copy: copyFor(entry) }]))
}

/** A copy by the smallest rules: every record says by which it was written. */
function copyFor({ types }: CatalogEntry): RecordCopy {
  return recordCopy(types.map((type) => ({ name: type, rule: smallest(formatNamed(type)) })))
}

function smallest({ algorithm, figures }: Format): Rule {
  return algorithm.ruleOf(new Array<number>(figures).fill(1))
}

function formatNamed(type: string): Format {
  return FORMATS.find(({ algorithm }) => algorithm.type === type) as Format
}
