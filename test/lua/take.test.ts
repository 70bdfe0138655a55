/**
 * The plain take of each algorithm: `decide` with all that it calls in one function of Lua. In the real Redis, on walks with clocks that step
 * back, it answers and leaves what `decide` of TypeScript does.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { generateTake } from '../../scripts/lua/generate.mjs'
import { luaTakes } from '../../scripts/lua/modules.mjs'
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
