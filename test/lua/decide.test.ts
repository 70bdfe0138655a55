/**
 * The decision, generated as Lua, in the real Redis: walks of keys with one to three limits, by all
 * algorithms, through takes, bookings, charges, refunds and settlements before and after their
 * time, with changed numbers and clocks that step back. Each verdict and each state has to be the
 * one of the TypeScript.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { luaModules } from '../../scripts/lua/modules.mjs'
import type { Rule } from '../../src/algorithms/algorithm.ts'
import { type Cell, decide, emptyVerdict, type Op } from '../../src/algorithms/decide.ts'
import { Random } from '../model/random.ts'
import { inRedis, joined, type LuaRedis, shown, startRedis } from './in-redis.ts'
import { ALGORITHMS, LATEST_US, nextTime, rulesOf, timesOf } from './rules.ts'

const WALKS = 500
const STEPS = 30

let redis: LuaRedis

beforeAll(async () => {
  redis = await startRedis()
})

afterAll(() => redis.close())

interface Part {
  /** Which of the limit's rules the caller has. */
  readonly rule: number
  readonly cost: number
  /** To settle: the charge of a level. */
  readonly ticket?: { readonly numbers: string; readonly words: readonly number[] }
}

interface Step {
  readonly op: Op
  readonly nowUs: number
  readonly aheadUs: number
  readonly ofUs: number
  readonly isTold: boolean
  readonly parts: readonly Part[]
}

/** What was charged of one limit. */
interface Charge {
  readonly numbers: string
  readonly cost: number
  readonly words: Float64Array
}

/** One limit of the key on this side. */
class Held {
  readonly rules: readonly Rule[]
  /** What each decision charged, none where it charged nothing. */
  readonly charges: Charge[] = []
  readonly cell: Cell
  readonly type: string

  constructor(type: string, random: Random) {
    this.type = type
    this.rules = rulesOf(type, random)
    const rule = this.rules[0] as Rule
    const s = new Float64Array(this.words)
    this.cell = { rule, cost: 0, ticket: undefined, s, i: 0, own: rule, isHeld: false, changed: false, verdict: emptyVerdict() }
  }

  get words(): number {
    return Math.max(...this.rules.map(({ words }) => words))
  }

  /** What a decision knows of its charge (settlement.ts). */
  noteCharge(): void {
    const { rule, cost, verdict } = this.cell
    const { atUs, resetUs, delayUs, enteredUs } = verdict
    const dueUs = delayUs > 0 ? atUs + delayUs : enteredUs
    this.charges.push({ numbers: rule.numbers, cost, words: Float64Array.of(atUs + resetUs, enteredUs, dueUs, 0) })
  }
}

class Walker {
  readonly limits: readonly Held[]
  readonly steps: Step[] = []
  readonly said: string[] = []
  /**
   * Of each level that was settled down, whether that was before its time, at which pace, and what
   * came back.
   */
  readonly settled: string[] = []
  readonly #random: Random
  #nowUs: number

  constructor(random: Random) {
    this.#random = random
    this.#nowUs = random.magnitude(1, LATEST_US)
    const types = Object.keys(ALGORITHMS)
    this.limits = Array.from({ length: random.pick([1, 1, 2, 3]) }, () => new Held(random.pick(types), random))
  }

  step(): void {
    const { cell, charges } = this.#random.pick(this.limits)
    this.#nowUs = nextTime(this.#nowUs, cell.own, this.#random, timesOf(charges))
    const step = this.#drawn()
    this.steps.push(step)
    const cells = this.limits.map(({ cell, rules }, k) => {
      const { rule, cost, ticket } = step.parts[k] as Part
      cell.rule = rules[rule] as Rule
      if (!cell.isHeld) cell.own = cell.rule
      cell.cost = cost
      cell.ticket = ticket && { numbers: ticket.numbers, words: Float64Array.from(ticket.words) }
      return cell
    })
    const granted = decide(step.op, cells, step.nowUs, step.aheadUs, step.ofUs, step.isTold)
    this.said.push([granted, ...cells.flatMap(({ changed, verdict, s }) => [changed, verdict, s])].map(shown).join(' '))
    const isCharged = (step.op === 'take' && granted && step.isTold) || step.op === 'charge'
    for (const limit of this.limits) {
      if (limit.cell.changed) limit.cell.isHeld = true
      if (isCharged) limit.noteCharge()
      if (step.op === 'settle') this.#noteSettled(limit.cell)
    }
  }

  #noteSettled({ own, cost, ticket, verdict }: Cell): void {
    if (cost >= 0 || ticket === undefined) return
    const when = this.#nowUs < (ticket.words[2] as number) ? 'before' : 'after'
    const pace = paceOf(own.numbers) === paceOf(ticket.numbers) ? 'same' : 'other'
    this.settled.push(`${when} ${pace} ${(verdict.given as number) > 0 ? 'given' : 'none'}`)
  }

  #drawn(): Step {
    const charges = (this.limits[0] as Held).charges.length
    const op = this.#random.weighted<Op>([
      [6, 'take'],
      [1, 'ask'],
      [2, 'give'],
      [2, 'charge'],
      [charges > 0 ? 5 : 0, 'settle'],
    ])
    const of = charges - 1 - this.#random.whole(0, Math.min(3, charges - 1))
    const aheadUs = op === 'take' && this.#random.chance(0.6) ? this.#ahead() : -1
    const parts = this.limits.map((limit) => (op === 'settle' ? this.#settlement(limit, of) : this.#part(limit, op)))
    const [first] = this.limits as readonly [Held]
    const entered = first.charges.map(({ words }) => words[1] as number)
    const ofUs = op === 'settle' ? (entered[of] as number) : this.#random.pick([-1, -1, ...entered.slice(-2)])
    return { op, nowUs: this.#nowUs, aheadUs, ofUs, isTold: this.#random.chance(0.9), parts }
  }

  #ahead(): number {
    const { windowUs } = (this.limits[0] as Held).cell.own
    return this.#random.pick([0, this.#random.magnitude(1, Math.max(1, 2 * windowUs))])
  }

  #rule({ rules, cell }: Held): number {
    return this.#random.chance(0.6) ? rules.indexOf(cell.own) : this.#random.whole(0, rules.length - 1)
  }

  #part(limit: Held, op: Op): Part {
    const rule = this.#rule(limit)
    const { capacity, mostUsed } = limit.rules[rule] as Rule
    const within = this.#random.magnitude(1, Math.max(1, capacity))
    const beyond = op === 'charge' ? this.#random.magnitude(1, 2 * mostUsed) : capacity + 1
    return { rule, cost: this.#random.pick([1, 0, within, within, Math.min(2, capacity), beyond]) }
  }

  /** More or less than was charged, and now and then what a part came back of before. */
  #settlement(limit: Held, of: number): Part {
    const random = this.#random
    const { numbers, cost, words } = limit.charges[of] as Charge
    const change = random.pick([-cost, -cost, -random.magnitude(1, Math.max(1, cost)), random.magnitude(1, Math.max(1, cost)), 0])
    const ticket = { numbers, words: [...words.with(3, random.chance(0.8) ? 0 : random.whole(0, cost))] }
    return { rule: this.#rule(limit), cost: change, ...(limit.cell.own.algorithm.bookable ? { ticket } : {}) }
  }
}

const WALK = `
local function heldOf(limit)
  local algorithm, rules = algorithms[limit.type], {}
  for k = 1, #limit.figures do
    rules[k - 1] = algorithm.ruleOf(arrayOf(limit.figures[k]))
  end
  local s = { length = limit.words + 1 }
  clearWords(s, 1, limit.words)
  local cell = { s = s, i = 1, own = rules[0], isHeld = false, changed = false, verdict = {} }
  return { rules = rules, words = limit.words, cell = cell }
end

local function answer(walk)
  local limits, cells, said = {}, { length = #walk.limits }, {}
  for k = 1, #walk.limits do
    limits[k] = heldOf(walk.limits[k])
    cells[k - 1] = limits[k].cell
    local verdict = cells[k - 1].verdict
    for name, value in pairs(walk.verdict) do
      verdict[name] = value
    end
  end
  for n, step in ipairs(walk.steps) do
    for k, limit in ipairs(limits) do
      local cell, part = limit.cell, step.parts[k]
      cell.rule = limit.rules[part.rule]
      if not cell.isHeld then
        cell.own = cell.rule
      end
      cell.cost = part.cost
      cell.ticket = part.ticket and { numbers = part.ticket.numbers, words = arrayOf(part.ticket.words) } or nil
    end
    local texts = { shown(decide(step.op, cells, step.nowUs, step.aheadUs, step.ofUs, step.isTold)) }
    for _, limit in ipairs(limits) do
      local cell = limit.cell
      texts[#texts + 1] = shown(cell.changed) .. ' ' .. shown(cell.verdict) .. ' ' .. shown(slice(cell.s, 1, 1 + limit.words))
      cell.isHeld = cell.isHeld or cell.changed
    end
    said[n] = table.concat(texts, ' ')
  end
  return table.concat(said, '\\n')
end`

test('the decision in Lua says and leaves what the TypeScript does', async () => {
  const random = new Random(4)
  const walkers = Array.from({ length: WALKS }, () => new Walker(random))
  for (const walker of walkers) {
    for (let k = 0; k < STEPS; k++) walker.step()
  }
  const walks = walkers.map(({ limits, steps }) => ({
    limits: limits.map(({ type, rules, words }) => ({ type, words, figures: rules.map(({ figures }) => figures) })),
    steps,
    verdict: emptyVerdict(),
  }))
  const lua = await inRedis(redis, joined(luaModules()), WALK, walks)
  for (const [k, { said }] of walkers.entries()) {
    const lines = (lua[k] as string).split('\n')
    const differs = lines.findIndex((line, at) => line !== said[at])
    if (differs < 0) continue
    const at = { limits: walks[k]?.limits, step: walks[k]?.steps[differs], before: said[differs - 1] }
    expect({ ...at, lua: lines[differs] }).toEqual({ ...at, lua: said[differs] })
  }
  expectVaried(walkers)
})

/** That the walks were about something. */
function expectVaried(walkers: readonly Walker[]): void {
  const said = walkers.flatMap((walker) => walker.said)
  for (const part of [/^true/, /^false/, /outcome:allowed/, /outcome:limited/, /outcome:impossible/, /delayUs:[1-9]/]) {
    expect(said.filter((line) => part.test(line)).length, `${part}`).toBeGreaterThan(said.length / 100)
  }
  const settled = walkers.flatMap((walker) => walker.settled)
  // Before its time nothing comes back at another pace.
  const kinds = ['before same given', 'before same none', 'before other none', 'after same given', 'after same none', 'after other given']
  for (const kind of [...kinds, 'after other none']) {
    expect(settled.filter((each) => each === kind).length, kind).toBeGreaterThan(20)
  }
}

function paceOf(numbers: string): string {
  return numbers.split(' ').slice(1).join()
}
