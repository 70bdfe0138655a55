/**
 * Decisions by one limit (takes, charges, settlements): `decide` with all that it calls in one
 * block of Lua for each algorithm and verb, and takes by several limits. In the real Redis, on
 * walks with clocks that step back, they answer and leave what `decide` of TypeScript does.
 */
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { generatePhases, generatePlain, generateTakeAll, type Plain } from '../../scripts/lua/generate.mjs'
import { luaPhases, luaPlain, luaTakeAll } from '../../scripts/lua/modules.mjs'
import type { Algorithm, Rule } from '../../src/algorithms/algorithm.ts'
import { type Cell, decide, emptyVerdict, type Op } from '../../src/algorithms/decide.ts'
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

const VERBS = ['take', 'charge', 'settle'] as const

interface Step {
  readonly verb: (typeof VERBS)[number]
  readonly nowUs: number
  readonly cost: number
  readonly isHeld: boolean
  readonly ofUs: number
  readonly drainedUs: number
}

/**
 * `plain.take` and the others: functions of the figures, which answer
 * `each(s, isHeld, cost, nowUs, ofUs, drainedUs)`, and how many words there are.
 */
function plainText({ words, rule, ...texts }: Plain): string {
  const functionOf = (verb: keyof typeof texts) =>
    `function plain.${verb}(figures)\n${words === undefined ? texts[verb] : shortText(verb)}end`
  const shortText = (verb: keyof typeof texts) => `${rule}
return function(s, isHeld, cost, nowUs, ofUs, drainedUs)
local s1, s2, s3, s4 = s[1], s[2], s[3], s[4]
local changed, outcome, remaining, retryUs, resetUs, delayUs, enteredUs, given
${texts[verb]}
s[1], s[2], s[3], s[4] = s1, s2, s3, s4
return changed, outcome, remaining, retryUs, resetUs, delayUs, enteredUs, given
end, ${words}
`
  return ['local plain = {}', ...VERBS.map(functionOf)].join('\n')
}

/** A walk is { figures, words, steps }. Answers what each step says, and the words behind it. */
const WALK = `
local function answer(walk)
  local s, said, makers = { length = walk.words + 1 }, {}, {}
  for k = 1, math.max(walk.words, 4) do
    s[k] = 7
  end
  for n, step in ipairs(walk.steps) do
    local each, words = plain[step.verb](arrayOf(walk.figures))
    local texts = { each(s, step.isHeld, step.cost, step.nowUs, step.ofUs, step.drainedUs) }
    for k = 1, 8 do
      texts[k] = shown(texts[k])
    end
    if step.verb == 'take' then
      texts[8] = words
    end
    for k = 1, walk.words do
      texts[8 + k] = shown(s[k])
    end
    said[n] = table.concat(texts, ' ')
  end
  return table.concat(said, '\\n')
end`

/**
 * A walk is { rules: [{ name, figures, words }], steps }, each step with the costs of all cells.
 * Answers what is said of each cell, and its words.
 */
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
  readonly said: string[] = []
  readonly #decide: Decide
  readonly #verbs: readonly Step['verb'][]
  readonly #random: Random
  readonly #cell: Cell
  /** What was charged, and what it left behind. */
  readonly #charges: { readonly ofUs: number; readonly drainedUs: number; readonly cost: number }[] = []
  #nowUs: number

  constructor(rule: Rule, random: Random, decideOf: Decide, verbs: readonly Step['verb'][]) {
    this.#decide = decideOf
    this.#verbs = verbs
    this.#random = random
    this.#nowUs = random.magnitude(1, LATEST_US)
    const s = new Float64Array(rule.words).fill(7)
    this.#cell = { rule, cost: 0, ticket: undefined, s, i: 0, own: rule, isHeld: false, changed: false, verdict: emptyVerdict() }
  }

  get rule(): Rule {
    return this.#cell.rule
  }

  step(): void {
    const cell = this.#cell
    const random = this.#random
    const { rule } = cell
    this.#nowUs = nextTime(this.#nowUs, rule, random)
    const charge = this.#charges.length > 0 ? random.pick(this.#charges) : undefined
    const verb = charge === undefined ? 'take' : random.pick(this.#verbs)
    const { ofUs, drainedUs } = verb === 'settle' && charge !== undefined ? charge : { ofUs: -1, drainedUs: 0 }
    cell.cost = verb === 'settle' && charge !== undefined ? this.#difference(charge.cost) : this.#cost(verb)
    cell.ticket =
      verb === 'settle' && rule.algorithm.bookable ? { numbers: rule.numbers, words: Float64Array.of(drainedUs, ofUs, ofUs, 0) } : undefined
    this.steps.push({ verb, nowUs: this.#nowUs, cost: cell.cost, isHeld: cell.isHeld, ofUs, drainedUs })
    this.#decide(verb as Op, [cell], this.#nowUs, -1, ofUs, true)
    this.#note(verb)
  }

  #cost(verb: Step['verb']): number {
    const { capacity } = this.rule
    const debt = verb === 'charge' ? this.#random.magnitude(1, 1e12) : capacity + 1
    return this.#random.pick([1, 1, 1, 0, this.#random.magnitude(1, capacity), capacity, debt])
  }

  /** More or less than was charged, and sometimes much more. */
  #difference(cost: number): number {
    return this.#random.pick([-cost, -cost, -1, 1, 3, -this.#random.magnitude(1, cost), this.#random.magnitude(1, 1e9)])
  }

  #note(verb: Step['verb']): void {
    const cell = this.#cell
    const { outcome, retryUs, resetUs, delayUs, enteredUs, atUs, given } = cell.verdict
    // A settlement does not tell it.
    const remaining = verb === 'settle' ? undefined : cell.verdict.remaining
    if (verb !== 'settle' && cell.changed && cell.cost > 0)
      this.#charges.push({ ofUs: enteredUs, drainedUs: atUs + resetUs, cost: cell.cost })
    const last = verb === 'take' ? this.rule.words : given
    this.said.push([cell.changed, outcome, remaining, retryUs, resetUs, delayUs, enteredUs, last, ...cell.s].map(shown).join(' '))
    cell.isHeld ||= cell.changed
  }
}

async function expectAlike(
  plain: Plain,
  rules: readonly Rule[],
  random: Random,
  decideOf: Decide,
  verbs: readonly Step['verb'][] = ['take', ...VERBS],
): Promise<Set<string>> {
  const walkers = rules.map((rule) => new Walker(rule, random, decideOf, verbs))
  for (const walker of walkers) for (let k = 0; k < STEPS; k++) walker.step()
  const walks = walkers.map(({ rule, steps }) => ({ figures: rule.figures, words: rule.words, steps }))
  const said = walkers.map((walker) => walker.said.join('\n'))
  expect(await inRedis(redis, plainText(plain), WALK, walks)).toEqual(said)
  const verbsPlayed = new Set(walkers.flatMap(({ steps }) => steps.map(({ verb }) => verb)))
  expect(verbsPlayed).toEqual(new Set(verbs))
  return new Set(said.flatMap((walk) => walk.match(/allowed|limited|impossible/g) ?? []))
}

test.each(luaPlain().map((plain) => [plain.name, plain] as const))('%s', async (name, plain) => {
  const random = new Random(11)
  const rules = Array.from({ length: WALKS }, () => random.pick(rulesOf(name, random)))
  expect(await expectAlike(plain, rules, random, decide)).toEqual(new Set(['allowed', 'limited', 'impossible']))
})

test('no variable of a rule hides one that its block stands among', async () => {
  const paths = ['stores/redis/fast-path.lua', 'stores/redis/fast-word.lua', 'algorithms/word-tag.lua']
  const files = paths.map((path) => new URL(`../../src/${path}`, import.meta.url))
  const script = (await Promise.all(files.map((file) => readFile(file, 'utf8')))).join('\n')
  const used = new Set(script.replace(/--.*/g, '').match(/[a-zA-Z]\w*/g))
  used.delete('figures')
  const rules = luaPlain().flatMap(({ rule = '' }) => [...rule.matchAll(/^local (?:function )?([\w, ]+)/gm)])
  const declared = rules.flatMap(([, names = '']) => names.trim().split(', '))
  expect(declared).toContain('capacity')
  expect(declared.filter((name) => used.has(name))).toEqual([])
})

describe('what is hard to put in place of a call', () => {
  const root = new URL('./fixtures/', import.meta.url)
  const plain = generatePlain({ root, decide: 'taking.ts', algorithm: { path: 'taking.ts', name: 'hard' } })

  test('is done in the same order', async () => {
    const random = new Random(12)
    const rules = Array.from({ length: 100 }, (_, k) => (hard as Algorithm).ruleOf([1 + (k % 9), 1 + (k % 5)]))
    await expectAlike(plain, rules, random, hardDecide, ['take'])
  })

  test('and what is known beforehand is left out', () => {
    expect(plain.take).not.toContain('unknown')
    expect(plain.take).not.toContain('algorithm')
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
