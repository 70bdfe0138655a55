/**
 * Takes by one limit, `decide` with all that it calls in one function of Lua for each algorithm, and takes by several. In the real Redis, on walks with
 * clocks that step back, they answer and leave what `decide` of TypeScript does.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { generatePhases, generateTake, generateTakeAll } from '../../scripts/lua/generate.mjs'
import { luaPhases, luaTakeAll, luaTakes } from '../../scripts/lua/modules.mjs'
import type { Algorithm, Rule } from '../../src/algorithms/algorithm.ts'
import { type Cell, decide, emptyVerdict } from '../../src/algorithms/decide.ts'
import { Random } from '../model/random.ts'
import { hard, decide as hardDecide } from './fixtures/taking.ts'
import { inRedis, type LuaRedis, shown, startRedis } from './in-redis.ts'
import { LATEST_US, nextTime, rulesOf } from './rules.ts'

const WALKS = 150
const STEPS = 30

let redis: LuaRedis

beforeAll(async () => {
  redis = await startRedis()
})

afterAll(() => redis.close())

interface Step {
  readonly nowUs: number
  readonly cost: number
  readonly isHeld: boolean
}

/** A walk is { figures, words, steps }. Answers what each take says, and the words behind it. */
const WALK = `
local function answer(walk)
  local take, words, isInVariables = newTake(arrayOf(walk.figures))
  local s, said = { length = walk.words + 1 }, { 'words ' .. words }
  for k = 1, math.max(walk.words, 4) do
    s[k] = 7
  end
  for n, step in ipairs(walk.steps) do
    local texts
    if isInVariables then
      texts = { take(s[1], s[2], s[3], s[4], step.isHeld, step.cost, step.nowUs) }
      s[4], s[3], s[2], s[1] = table.remove(texts), table.remove(texts), table.remove(texts), table.remove(texts)
    else
      texts = { take(s, step.isHeld, step.cost, step.nowUs) }
    end
    for k = 1, #texts do
      texts[k] = shown(texts[k])
    end
    for k = 1, walk.words do
      texts[#texts + 1] = shown(s[k])
    end
    said[n + 1] = table.concat(texts, ' ')
  end
  return table.concat(said, '\\n')
end`

/** A walk is { rules: [{ name, figures, words }], steps }, each step with the costs of all cells. Answers what is said of each cell, and its words. */
const WALK_ALL = `
local function answer(walk)
  local cells, said = { length = #walk.rules }, {}
  for k, rule in ipairs(walk.rules) do
    local agree, finish, words, freshWords = phases[rule.name](arrayOf(rule.figures))
    local cell = { agree = agree, finish = finish, s = { length = rule.words + 1 }, isHeld = false, verdict = {}, cost = 0, changed = false }
    for n = 1, rule.words do
      cell.s[n] = 7
    end
    cells[k - 1] = cell
    said[k] = 'words ' .. words .. ' ' .. freshWords
  end
  for _, step in ipairs(walk.steps) do
    for k = 0, cells.length - 1 do
      cells[k].cost = step.costs[k + 1]
    end
    local texts = { shown(takeAll(cells, step.nowUs)) }
    for k = 0, cells.length - 1 do
      local cell, verdict = cells[k], cells[k].verdict
      local told = { cell.changed, verdict.outcome, verdict.remaining, verdict.retryUs, verdict.resetUs, verdict.delayUs, verdict.enteredUs }
      for n = 1, 7 do
        texts[#texts + 1] = shown(told[n])
      end
      for n = 1, walk.rules[k + 1].words do
        texts[#texts + 1] = shown(cell.s[n])
      end
      cell.isHeld = cell.isHeld or cell.changed
    end
    said[#said + 1] = table.concat(texts, ' ')
  end
  return table.concat(said, '\\n')
end`

type Decide = typeof decide

class Walker {
  readonly steps: Step[] = []
  readonly said: string[]
  readonly #decide: Decide
  readonly #random: Random
  readonly #cell: Cell
  #nowUs: number

  constructor(rule: Rule, random: Random, decideOf: Decide) {
    this.#decide = decideOf
    this.#random = random
    this.#nowUs = random.magnitude(1, LATEST_US)
    this.said = [`words ${rule.words}`]
    const s = new Float64Array(rule.words).fill(7)
    this.#cell = { rule, cost: 0, ticket: undefined, s, i: 0, own: rule, isHeld: false, changed: false, verdict: emptyVerdict() }
  }

  get rule(): Rule {
    return this.#cell.rule
  }

  step(): void {
    const cell = this.#cell
    this.#nowUs = nextTime(this.#nowUs, cell.rule, this.#random)
    const { capacity } = cell.rule
    cell.cost = this.#random.pick([1, 1, 1, 0, this.#random.magnitude(1, capacity), capacity, capacity + 1])
    this.steps.push({ nowUs: this.#nowUs, cost: cell.cost, isHeld: cell.isHeld })
    this.#decide('take', [cell], this.#nowUs, -1, -1, true)
    const { outcome, remaining, retryUs, resetUs, delayUs, enteredUs } = cell.verdict
    this.said.push([cell.changed, outcome, remaining, retryUs, resetUs, delayUs, enteredUs, ...cell.s].map(shown).join(' '))
    cell.isHeld ||= cell.changed
  }
}

async function expectAlike(text: string, rules: readonly Rule[], random: Random, decideOf: Decide): Promise<Set<string>> {
  const walkers = rules.map((rule) => new Walker(rule, random, decideOf))
  for (const walker of walkers) for (let k = 0; k < STEPS; k++) walker.step()
  const walks = walkers.map(({ rule, steps }) => ({ figures: rule.figures, words: rule.words, steps }))
  const said = walkers.map((walker) => walker.said.join('\n'))
  expect(await inRedis(redis, `local function newTake(figures)\n${text}end`, WALK, walks)).toEqual(said)
  return new Set(said.flatMap((walk) => walk.match(/allowed|limited|impossible/g) ?? []))
}

test.each(luaTakes().map(({ name, text }) => [name, text] as const))('%s', async (name, text) => {
  const random = new Random(11)
  const rules = Array.from({ length: WALKS }, () => random.pick(rulesOf(name, random)))
  expect(await expectAlike(text, rules, random, decide)).toEqual(new Set(['allowed', 'limited', 'impossible']))
})

describe('what is hard to put in place of a call', () => {
  const root = new URL('./fixtures/', import.meta.url)
  const text = generateTake({ root, decide: 'taking.ts', algorithm: { path: 'taking.ts', name: 'hard' } })

  test('is done in the same order', async () => {
    const random = new Random(12)
    const rules = Array.from({ length: 100 }, (_, k) => (hard as Algorithm).ruleOf([1 + (k % 9), 1 + (k % 5)]))
    await expectAlike(text, rules, random, hardDecide)
  })

  test('and what is known beforehand is left out', () => {
    expect(text).not.toContain('unknown')
    expect(text).not.toContain('algorithm')
  })
})

/** What stands in the script before a walk by several limits. */
function severalText(phases: readonly { readonly name: string; readonly text: string }[], takeAll: string): string {
  return ['local phases = {}', ...phases.map(({ name, text }) => `function phases.${name}(figures)\n${text}end`), takeAll].join('\n')
}

/** Walks by one to three of these limits; each step is a take of all of them. */
async function expectAllAlike(
  text: string,
  rulesFor: () => readonly (readonly [name: string, rule: Rule])[],
  random: Random,
  decideOf: Decide,
) {
  const walks = Array.from({ length: WALKS }, () => walkOfSeveral(rulesFor(), random, decideOf))
  expect(await inRedis(redis, text, WALK_ALL, walks)).toEqual(walks.map(({ said }) => said.join('\n')))
  return new Set(walks.flatMap(({ said }) => said.join().match(/allowed|limited|impossible/g) ?? []))
}

function walkOfSeveral(rules: readonly (readonly [name: string, rule: Rule])[], random: Random, decideOf: Decide) {
  const cells = rules.map(([, rule]): Cell => {
    const s = new Float64Array(rule.words).fill(7)
    return { rule, cost: 0, ticket: undefined, s, i: 0, own: rule, isHeld: false, changed: false, verdict: emptyVerdict() }
  })
  const said = rules.map(([, rule]) => `words ${rule.words} ${rule.freshWords}`)
  const steps: { nowUs: number; costs: number[] }[] = []
  let nowUs = random.magnitude(1, LATEST_US)
  for (let k = 0; k < STEPS; k++) {
    nowUs = nextTime(nowUs, random.pick(rules)[1], random)
    for (const cell of cells)
      cell.cost = random.pick([1, 1, 1, 1, 0, random.magnitude(1, cell.rule.capacity), cell.rule.capacity + (k % 9 === 8 ? 1 : 0)])
    steps.push({ nowUs, costs: cells.map(({ cost }) => cost) })
    const granted = decideOf('take', cells, nowUs, -1, -1, true)
    const told = cells.flatMap(({ changed, verdict: { outcome, remaining, retryUs, resetUs, delayUs, enteredUs }, s }) => {
      return [changed, outcome, remaining, retryUs, resetUs, delayUs, enteredUs, ...s]
    })
    said.push([granted, ...told].map(shown).join(' '))
    for (const cell of cells) cell.isHeld ||= cell.changed
  }
  return { rules: rules.map(([name, { figures, words }]) => ({ name, figures, words })), steps, said }
}

describe('takes by several limits', () => {
  test('of all algorithms', async () => {
    const random = new Random(13)
    const all = luaPhases()
    const rulesFor = () =>
      Array.from({ length: random.whole(1, 3) }, () => {
        const { name } = random.pick(all)
        return [name, random.pick(rulesOf(name, random))] as const
      })
    const outcomes = await expectAllAlike(severalText(all, luaTakeAll()), rulesFor, random, decide)
    expect(outcomes).toEqual(new Set(['allowed', 'limited', 'impossible']))
  })

  test('need a decide that walks over its cells twice', () => {
    const root = new URL('./fixtures/', import.meta.url)
    const algorithm = { path: 'taking.ts', name: 'hard' }
    expect(() => generatePhases({ root, decide: 'taking.ts', algorithm })).toThrow('decide has to have 2 loops over its cells')
    expect(() => generateTakeAll({ root, decide: 'taking.ts' })).toThrow('decide has to have 2 loops over its cells')
  })
})
