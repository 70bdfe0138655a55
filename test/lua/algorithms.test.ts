/**
 * Every algorithm, generated as Lua, in the real Redis: walks from the state of an unused key
 * through charges, debt, refunds, settlements before and after their time, changed numbers and
 * clocks that step back. After each step all functions have to answer alike, and leave the same
 * words.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { luaModules } from '../../scripts/lua/modules.mjs'
import type { Algorithm, Rule } from '../../src/algorithms/algorithm.ts'
import { Random } from '../model/random.ts'
import { inRedis, joined, type LuaRedis, shown, startRedis } from './in-redis.ts'
import { ALGORITHMS, LATEST_US, nextTime, rulesOf, timesOf } from './rules.ts'

const WALKS = 250
const STEPS = 40
/** Where the words stand in TypeScript. In Lua they start at 1. */
const BASE = 2

let redis: LuaRedis

beforeAll(async () => {
  redis = await startRedis()
})

afterAll(() => redis.close())

type Action = 'none' | 'charge' | 'giveBack' | 'settle'

interface Step {
  readonly nowUs: number
  /** Which of the rules the caller has. */
  readonly to: number
  readonly cost: number
  readonly room: number
  readonly aheadUs: number
  readonly action: Action
  readonly ofUs: number
  /** The charge that is settled. */
  readonly charge: Charge
}

/** A charge of a level, and which of the rules it was made under. */
interface Charge {
  readonly own: number
  readonly cost: number
  readonly words: readonly number[]
}

interface Walk {
  readonly type: string
  readonly figures: readonly (readonly number[])[]
  readonly words: number
  readonly steps: readonly Step[]
}

const NONE: Charge = { own: 0, cost: 0, words: [] }

/** A key on this side. Draws each step out of what it sees, so that walks stay in the domain. */
class Walker {
  readonly said: string[] = []
  readonly steps: Step[] = []
  readonly rules: readonly Rule[]
  readonly words: number
  readonly #algorithm: Algorithm
  readonly #random: Random
  readonly #s: Float64Array
  readonly #charges: Charge[] = []
  readonly #entered: number[] = []
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
    const times = timesOf(this.#charges.map(({ words }) => ({ words: Float64Array.from(words) })))
    this.#nowUs = nextTime(this.#nowUs, this.rules[this.#own] as Rule, this.#random, times)
    const step = this.#drawn()
    this.steps.push(step)
    this.said.push([this.#ask(step), this.#act(step), this.#s.subarray(BASE)].map(shown).join(' '))
  }

  #drawn(): Step {
    const random = this.#random
    const to = random.chance(0.7) ? this.#own : random.whole(0, this.rules.length - 1)
    const { capacity } = this.rules[to] as Rule
    const charge = this.#charges.length > 0 ? random.pick(this.#charges.slice(-4)) : NONE
    const action = random.weighted<Action>([
      [6, 'charge'],
      [2, 'giveBack'],
      [charge === NONE ? 0 : 4, 'settle'],
      [1, 'none'],
    ])
    const cost = action === 'settle' ? random.pick([charge.cost, random.magnitude(1, charge.cost)]) : this.#cost(to)
    const room = random.pick([0, Math.max(0, capacity - 1), Math.max(0, capacity - cost), random.whole(0, capacity)])
    const ofUs = random.pick([-1, ...this.#entered.slice(-3), random.whole(0, this.#nowUs)])
    const aheadUs = random.magnitude(1, 60_000_000)
    return { nowUs: this.#nowUs, to, cost, room, aheadUs, action: cost > 0 ? action : 'none', ofUs, charge: this.#partOf(charge) }
  }

  /** Up to what may be in use, mostly within the capacity. */
  #cost(to: number): number {
    const random = this.#random
    const { capacity, mostUsed } = this.rules[to] as Rule
    const cost = random.pick([1, 1, 1, random.magnitude(1, Math.max(1, capacity)), random.magnitude(1, mostUsed)])
    return Math.min(cost, mostUsed - this.#algorithm.used(this.rules[this.#own] as Rule, this.#s, BASE, this.#nowUs))
  }

  /** Now and then a part of it came back before. */
  #partOf(charge: Charge): Charge {
    if (charge === NONE || this.#random.chance(0.8)) return charge
    const [drainedUs, enteredUs, dueUs] = charge.words as readonly [number, number, number]
    return { ...charge, words: [drainedUs, enteredUs, dueUs, this.#random.magnitude(1, charge.cost)] }
  }

  #ask({ nowUs, to, room, aheadUs }: Step): unknown[] {
    const [own, other] = [this.rules[this.#own] as Rule, this.rules[to] as Rule]
    const algorithm = this.#algorithm
    return [
      algorithm.repair(own, this.#s, BASE, nowUs),
      algorithm.used(own, this.#s, BASE, nowUs),
      algorithm.untilUs(own, this.#s, BASE, nowUs, room),
      algorithm.resetUs(own, this.#s, BASE, nowUs),
      algorithm.movesInUs?.(own, other, this.#s, BASE, nowUs, Math.min(room, other.capacity), aheadUs),
      algorithm.neededWords?.(this.#s, BASE),
    ]
  }

  #act({ nowUs, to, cost, action, ofUs, charge }: Step): unknown {
    const [own, other] = [this.rules[this.#own] as Rule, this.rules[to] as Rule]
    const algorithm = this.#algorithm
    if (action === 'none') return undefined
    if (action === 'giveBack') return algorithm.giveBack(own, this.#s, BASE, nowUs, cost, ofUs, undefined)
    if (action === 'settle') {
      const charged = { rule: this.rules[charge.own] as Rule, words: Float64Array.from(charge.words) }
      return algorithm.giveBack(own, this.#s, BASE, nowUs, cost, ofUs, charged)
    }
    const room = algorithm.spaced ? 0 : Math.max(0, other.capacity - cost)
    const delayUs = algorithm.untilUs(own, this.#s, BASE, nowUs, room)
    const lateUs = algorithm.charge(own, other, this.#s, BASE, nowUs, cost)
    this.#own = to
    this.#entered.push(nowUs + lateUs)
    const words = [nowUs + algorithm.resetUs(other, this.#s, BASE, nowUs), nowUs + lateUs, nowUs + Math.max(delayUs, lateUs), 0]
    if (algorithm.bookable) this.#charges.push({ own: to, cost, words })
    return lateUs
  }
}

const WALK = `
local function answer(walk)
  local algorithm, rules = algorithms[walk.type], {}
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
    local other = rules[step.to]
    answers[4] = algorithm.movesInUs and algorithm.movesInUs(rule, other, s, 1, nowUs, math.min(step.room, other.capacity), step.aheadUs)
    answers[5] = algorithm.neededWords and algorithm.neededWords(s, 1)
    return shown(answers)
  end

  local function act(step)
    if step.action == 'none' then
      return nil
    elseif step.action == 'giveBack' then
      return algorithm.giveBack(rules[own], s, 1, step.nowUs, step.cost, step.ofUs, nil)
    elseif step.action == 'settle' then
      local charge = { rule = rules[step.charge.own], words = arrayOf(step.charge.words) }
      return algorithm.giveBack(rules[own], s, 1, step.nowUs, step.cost, step.ofUs, charge)
    end
    local lateUs = algorithm.charge(rules[own], rules[step.to], s, 1, step.nowUs, step.cost)
    own = step.to
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
  const actions = steps.map(({ action, nowUs, charge: { words }, said }) => {
    const when = action === 'settle' ? (nowUs < (words[2] as number) ? 'before ' : 'after ') : ''
    return `${action} ${when}${/\] (\S+) \[/.exec(said)?.[1]}`
  })
  const isBookable = steps.some(({ action }) => action === 'settle')
  const kinds = [/^charge 0/, /^giveBack [1-9]/, /^giveBack -1/]
  // What gives back answers how much, or -1.
  if (isBookable) kinds.push(/^settle before \d/, /^settle before -1/, /^settle after \d/, /^settle after -1/)
  for (const kind of kinds) expect(actions.filter((action) => kind.test(action)).length, `${kind}`).toBeGreaterThan(STEPS)
  const answers = steps.map(({ said }) => said.slice(1).split(' '))
  const counts = [
    answers.filter(([repaired]) => repaired === 'true').length,
    answers.filter(([, used]) => used !== '0').length,
    answers.filter(([, , untilUs]) => untilUs !== '0').length,
  ]
  expect(Math.min(...counts)).toBeGreaterThan(STEPS * 5)
}
