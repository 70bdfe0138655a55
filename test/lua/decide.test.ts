/**
 * The decision, generated as Lua, in the real Redis: walks of keys with one to three limits, by all
 * algorithms, through every verb, with changed numbers and clocks that step back. Each verdict and
 * each state has to be the one of the TypeScript.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { luaModules } from '../../scripts/lua/modules.mjs'
import type { Rule } from '../../src/algorithms/algorithm.ts'
import { type Cell, decide, emptyVerdict, type Op, type Ticket } from '../../src/algorithms/decide.ts'
import { Random } from '../model/random.ts'
import { inRedis, joined, type LuaRedis, shown, startRedis } from './in-redis.ts'
import { ALGORITHMS, LATEST_US, nextTime, rulesOf } from './rules.ts'

const WALKS = 400
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
  /** For `give`: which of the limit's tickets, or -1. */
  readonly ticket: number
}

interface Step {
  readonly op: Op
  readonly nowUs: number
  readonly aheadUs: number
  readonly ofUs: number
  readonly isTold: boolean
  readonly parts: readonly Part[]
}

/** One limit of the key on this side. */
class Held {
  readonly rules: readonly Rule[]
  readonly tickets: Ticket[] = []
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

  /** What the store does with an answer. */
  keep(): void {
    const { cell } = this
    if (cell.changed) cell.isHeld = true
    if (cell.verdict.ticket !== undefined) this.tickets.push(cell.verdict.ticket)
  }
}

class Walker {
  readonly limits: readonly Held[]
  readonly steps: Step[] = []
  readonly said: string[] = []
  readonly #random: Random
  readonly #entered: number[] = []
  #nowUs: number

  constructor(random: Random) {
    this.#random = random
    this.#nowUs = random.magnitude(1, LATEST_US)
    const types = Object.keys(ALGORITHMS)
    this.limits = Array.from({ length: random.pick([1, 1, 2, 3]) }, () => new Held(random.pick(types), random))
  }

  step(): void {
    const first = this.limits[0] as Held
    this.#nowUs = nextTime(this.#nowUs, first.cell.own, this.#random)
    const step = this.#drawn()
    this.steps.push(step)
    const cells = this.limits.map(({ cell, rules, tickets }, k) => {
      const { rule, cost, ticket } = step.parts[k] as Part
      cell.rule = rules[rule] as Rule
      if (!cell.isHeld) cell.own = cell.rule
      cell.cost = cost
      cell.ticket = tickets[ticket]
      cell.verdict.ticket = undefined
      return cell
    })
    const granted = decide(step.op, cells, step.nowUs, step.aheadUs, step.ofUs, step.isTold)
    this.said.push([granted, ...cells.flatMap(({ changed, verdict, s }) => [changed, verdict, s])].map(shown).join(' '))
    if (granted && step.op === 'take') this.#entered.push(first.cell.verdict.enteredUs)
    for (const limit of this.limits) limit.keep()
  }

  #drawn(): Step {
    const op = this.#random.weighted<Op>([
      [6, 'take'],
      [1, 'ask'],
      [3, 'give'],
    ])
    const { windowUs } = (this.limits[0] as Held).cell.own
    const aheadUs = this.#random.chance(0.4) ? this.#random.pick([0, this.#random.magnitude(1, 2 * windowUs)]) : -1
    const ofUs = this.#random.pick([-1, ...this.#entered.slice(-2), this.#random.whole(0, this.#nowUs)])
    return { op, nowUs: this.#nowUs, aheadUs, ofUs, isTold: this.#random.chance(0.9), parts: this.limits.map((limit) => this.#part(limit)) }
  }

  #part({ rules, tickets, cell }: Held): Part {
    const rule = this.#random.chance(0.7) ? rules.indexOf(cell.own) : this.#random.whole(0, rules.length - 1)
    const { capacity } = rules[rule] as Rule
    const cost = this.#random.pick([1, 1, 0, this.#random.magnitude(1, capacity), Math.min(2, capacity), capacity + 1])
    return { rule, cost, ticket: this.#random.chance(0.5) ? this.#random.whole(0, tickets.length - 1) : -1 }
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
  return { rules = rules, tickets = {}, words = limit.words, cell = cell }
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
      cell.cost, cell.ticket, cell.verdict.ticket = part.cost, limit.tickets[part.ticket + 1], nil
    end
    local texts = { shown(decide(step.op, cells, step.nowUs, step.aheadUs, step.ofUs, step.isTold)) }
    for _, limit in ipairs(limits) do
      local cell = limit.cell
      texts[#texts + 1] = shown(cell.changed) .. ' ' .. shown(cell.verdict) .. ' ' .. shown(slice(cell.s, 1, 1 + limit.words))
      cell.isHeld = cell.isHeld or cell.changed
      limit.tickets[#limit.tickets + 1] = cell.verdict.ticket
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
  expectVaried(walkers.flatMap(({ said }) => said))
})

/** That the walks were about something. */
function expectVaried(said: readonly string[]): void {
  for (const part of [/^true/, /^false/, /outcome:allowed/, /outcome:limited/, /outcome:impossible/, /ticket:{/, /delayUs:[1-9]/]) {
    expect(said.filter((line) => part.test(line)).length, `${part}`).toBeGreaterThan(said.length / 50)
  }
}
