/**
 * Every algorithm, generated as Lua, in the real Redis: walks from the state of an unused key
 * through charges, debt, refunds, settlements, cancelled reservations, changed numbers and clocks
 * that step back. After each step all functions have to answer alike, and leave the same words.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { luaModules } from '../../scripts/lua/modules.mjs'
import type { Algorithm, Rule } from '../../src/algorithms/algorithm.ts'
import { Random } from '../model/random.ts'
import { inRedis, joined, type LuaRedis, shown, startRedis } from './in-redis.ts'
import { ALGORITHMS, LATEST_US, nextTime, rulesOf } from './rules.ts'

const WALKS = 250
const STEPS = 40
/** Where the words stand in TypeScript. In Lua they start at 1. */
const BASE = 2

let redis: LuaRedis

beforeAll(async () => {
  redis = await startRedis()
})

afterAll(() => redis.close())

type Action = 'none' | 'charge' | 'chargeAt' | 'giveBack' | 'giveRest' | 'cancel'

interface Step {
  readonly nowUs: number
  /** Which of the rules the caller has. */
  readonly to: number
  readonly cost: number
  readonly room: number
  readonly action: Action
  readonly ofUs: number
  /** Which of the tickets is cancelled. */
  readonly ticket: number
}

interface Walk {
  readonly type: string
  readonly figures: readonly (readonly number[])[]
  readonly words: number
  readonly steps: readonly Step[]
}

interface Ticket {
  readonly own: number
  readonly words: Float64Array
}

/** A key on this side. Draws each step out of what it sees, so that walks stay in the domain. */
class Walker {
  readonly said: string[] = []
  readonly steps: Step[] = []
  readonly rules: readonly Rule[]
  readonly words: number
  readonly #algorithm: Algorithm
  readonly #random: Random
  readonly #s: Float64Array
  readonly #tickets: Ticket[] = []
  #entered: number[] = []
  #own = 0
  #nowUs: number

  constructor(type: string, random: Random) {
    this.#algorithm = ALGORITHMS[type] as Algorithm
    this.rules = rulesOf(type, random)
    this.words = Math.max(...this.rules.map(({ words }) => words))
    this.#s = new Float64Array(BASE + this.words)
    this.#random = random
    this.#nowUs = random.magnitude(1, LATEST_US)
  }

  step(): void {
    this.#nowUs = nextTime(this.#nowUs, this.rules[this.#own] as Rule, this.#random)
    const step = this.#drawn()
    this.steps.push(step)
    this.said.push([this.#ask(step), this.#act(step), this.#s.subarray(BASE)].map(shown).join(' '))
  }

  #drawn(): Step {
    const to = this.#random.chance(0.7) ? this.#own : this.#random.whole(0, this.rules.length - 1)
    const { capacity } = this.rules[to] as Rule
    const cost = this.#random.chance(0.4) ? 1 : this.#random.magnitude(1, capacity)
    const room = this.#random.pick([0, capacity - 1, capacity - cost, this.#random.whole(0, capacity)])
    const action = this.#action(to, cost)
    const times = [...this.#entered.slice(-3), this.#random.whole(0, this.#nowUs)]
    const ofUs = this.#random.pick(action === 'chargeAt' ? times : [-1, ...times])
    const ticket = this.#random.whole(0, Math.max(0, this.#tickets.length - 1))
    return { nowUs: this.#nowUs, to, cost, room, action, ofUs, ticket }
  }

  #action(to: number, cost: number): Action {
    const action = this.#random.weighted<Action>([
      [6, 'charge'],
      [this.#algorithm.chargeAt === undefined ? 0 : 2, 'chargeAt'],
      [2, 'giveBack'],
      [this.#tickets.length > 0 ? 2 : 0, 'giveRest'],
      [this.#tickets.length > 0 ? 2 : 0, 'cancel'],
      [1, 'none'],
    ])
    const own = this.rules[this.#own] as Rule
    const used = this.#algorithm.used(own, this.#s, BASE, this.#nowUs)
    // Beyond the capacity as well, but not without end.
    const most = (this.rules[to] as Rule).capacity * 3
    return (action === 'charge' || action === 'chargeAt') && used + cost > most ? 'none' : action
  }

  #ask({ nowUs, to, cost, room }: Step): unknown[] {
    const [own, other] = [this.rules[this.#own] as Rule, this.rules[to] as Rule]
    const algorithm = this.#algorithm
    return [
      algorithm.repair(own, this.#s, BASE, nowUs),
      algorithm.used(own, this.#s, BASE, nowUs),
      algorithm.untilUs(own, this.#s, BASE, nowUs, room),
      algorithm.resetUs(own, this.#s, BASE, nowUs),
      algorithm.dueUs?.(own, other, this.#s, BASE, nowUs, cost),
      algorithm.neededWords?.(this.#s, BASE),
    ]
  }

  #act({ nowUs, to, cost, action, ofUs, ticket }: Step): unknown {
    const [own, other] = [this.rules[this.#own] as Rule, this.rules[to] as Rule]
    if (action === 'none') return undefined
    if (action === 'giveBack') return this.#algorithm.giveBack(own, this.#s, BASE, nowUs, cost, ofUs, undefined)
    if (action === 'chargeAt') {
      const isWritten = this.#algorithm.chargeAt?.(own, other, this.#s, BASE, nowUs, cost, ofUs)
      if (isWritten) this.#own = to
      return isWritten
    }
    if (action === 'cancel' || action === 'giveRest') {
      const { own: booked, words } = this.#tickets[ticket] as Ticket
      const left = { rule: this.rules[booked] as Rule, words }
      if (action === 'giveRest') return this.#algorithm.giveRest?.(own, this.#s, BASE, nowUs, cost, left)
      return this.#algorithm.giveBack(own, this.#s, BASE, nowUs, cost, ofUs, { rule: this.rules[booked] as Rule, words })
    }
    const lateUs = this.#algorithm.charge(own, other, this.#s, BASE, nowUs, cost)
    this.#own = to
    this.#entered.push(nowUs + lateUs)
    if (this.#algorithm.bookable) this.#tickets.push({ own: to, words: this.#s.slice(BASE, BASE + other.words) })
    return lateUs
  }
}

const WALK = `
local function answer(walk)
  local algorithm, rules, tickets = algorithms[walk.type], {}, {}
  for k = 1, #walk.figures do
    rules[k - 1] = algorithm.ruleOf(arrayOf(walk.figures[k]))
  end
  local s, own, said = { length = walk.words + 1 }, 0, {}
  clearWords(s, 1, walk.words)

  local function ask(step)
    local rule, nowUs = rules[own], step.nowUs
    local answers = { length = 6 }
    answers[0] = algorithm.repair(rule, s, 1, nowUs)
    answers[1] = algorithm.used(rule, s, 1, nowUs)
    answers[2] = algorithm.untilUs(rule, s, 1, nowUs, step.room)
    answers[3] = algorithm.resetUs(rule, s, 1, nowUs)
    answers[4] = algorithm.dueUs and algorithm.dueUs(rule, rules[step.to], s, 1, nowUs, step.cost)
    answers[5] = algorithm.neededWords and algorithm.neededWords(s, 1)
    return shown(answers)
  end

  local function act(step)
    if step.action == 'none' then
      return nil
    elseif step.action == 'giveBack' then
      return algorithm.giveBack(rules[own], s, 1, step.nowUs, step.cost, step.ofUs, nil)
    elseif step.action == 'chargeAt' then
      local isWritten = algorithm.chargeAt(rules[own], rules[step.to], s, 1, step.nowUs, step.cost, step.ofUs)
      own = isWritten and step.to or own
      return isWritten
    elseif step.action == 'giveRest' then
      local ticket = tickets[step.ticket + 1]
      return algorithm.giveRest(rules[own], s, 1, step.nowUs, step.cost, { rule = rules[ticket.own], words = ticket.words })
    elseif step.action == 'cancel' then
      local ticket = tickets[step.ticket + 1]
      return algorithm.giveBack(rules[own], s, 1, step.nowUs, step.cost, step.ofUs, { rule = rules[ticket.own], words = ticket.words })
    end
    local lateUs = algorithm.charge(rules[own], rules[step.to], s, 1, step.nowUs, step.cost)
    own = step.to
    tickets[#tickets + 1] = { own = own, words = slice(s, 1, 1 + rules[own].words) }
    return lateUs
  end

  for k = 1, #walk.steps do
    local asked = ask(walk.steps[k])
    local acted = shown(act(walk.steps[k]))
    said[k] = asked .. ' ' .. acted .. ' ' .. shown(slice(s, 1, 1 + walk.words))
  end
  return table.concat(said, '\\n')
end`

test.each(Object.keys(ALGORITHMS))('%s in Lua answers and leaves what the TypeScript does', async (type) => {
  const random = new Random(8)
  const walkers = Array.from({ length: WALKS }, () => new Walker(type, random))
  for (const walker of walkers) {
    for (let k = 0; k < STEPS; k++) walker.step()
  }
  const walks: Walk[] = walkers.map(({ rules, words, steps }) => ({ type, figures: rules.map(({ figures }) => figures), words, steps }))
  const lua = await inRedis(redis, joined(luaModules()), WALK, walks)
  for (const [k, walker] of walkers.entries()) {
    const said = (lua[k] as string).split('\n')
    const differs = said.findIndex((line, at) => line !== walker.said[at])
    if (differs < 0) continue
    const { figures, steps } = walks[k] as Walk
    const at = { figures, step: steps[differs], before: walker.said[differs - 1] }
    expect({ ...at, lua: said[differs] }).toEqual({ ...at, lua: walker.said[differs] })
  }
  expectVaried(walkers)
})

/**
 * That the walks were about something: every action was taken, and each kind of answer was given
 * both ways.
 */
function expectVaried(walkers: readonly Walker[]): void {
  const steps = walkers.flatMap(({ steps, said }) => steps.map((step, k) => ({ ...step, said: said[k] as string })))
  const actions = steps.map(({ action, said }) => `${action} ${/\] (\S+) \[/.exec(said)?.[1]}`)
  const isBookable = steps.some(({ action }) => action === 'giveRest')
  const hasTimes = steps.some(({ action }) => action === 'chargeAt')
  // What gives back answers how much, or -1.
  const kinds = [
    /^charge 0/,
    /^giveBack [1-9]/,
    /^giveBack -1/,
    ...(isBookable ? [/^giveRest \d/, /^giveRest -1/] : hasTimes ? [/^chargeAt true/, /^chargeAt false/] : []),
  ]
  for (const kind of kinds) expect(actions.filter((action) => kind.test(action)).length, `${kind}`).toBeGreaterThan(STEPS)
  const answers = steps.map(({ said }) => said.slice(1).split(' '))
  const counts = [
    answers.filter(([repaired]) => repaired === 'true').length,
    answers.filter(([, used]) => used !== '0').length,
    answers.filter(([, , untilUs]) => untilUs !== '0').length,
  ]
  expect(Math.min(...counts)).toBeGreaterThan(STEPS * 5)
}
