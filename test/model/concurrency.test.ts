/**
 * `concurrency` against a naive list of leases: the answer and the state after each step, on every
 * store.
 */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { RULE, type Rule, type StateFields } from '../../src/algorithms/algorithm.ts'
import type { Verdict } from '../../src/algorithms/decide.ts'
import type { AsyncStore } from '../../src/index.ts'
import { concurrency } from '../../src/index.ts'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { inspectRows } from '../../src/stores/postgres/inspect.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { inspectKey } from '../../src/stores/redis/inspect.ts'
import { sharedStore } from '../../src/stores/shared-memory/index.ts'
import { Part, type Scope, Step } from '../../src/stores/step.ts'
import type { SyncStore } from '../../src/stores/store.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'
import { sharedTable } from '../support/postgres-client.ts'
import { connectRedis } from '../support/redis-client.ts'
import { openSqlite } from '../support/stores.ts'
import { ConcurrencyOracle, type Numbers, type Question } from './concurrency-oracle.ts'
import { Random } from './random.ts'

const SEED = Number(process.env.SLUICE_SEED ?? 1)
const KEY = 'key'
const NAME = 'model'
const START_US = 1_700_000_000_000_000

/** A store that is told the time with each step, and shows what it holds. */
interface Stage {
  apply(step: Step, nowUs: number): Promise<readonly Verdict[]>
  fields(): Promise<StateFields | undefined>
  close(): void
}

function scopeOf(rules: readonly Rule[]): Scope {
  return { name: NAME, limits: [{ name: 'default', rule: rules[0] as Rule }] }
}

/** What synchronous stores have for looking. */
interface Inspectable extends SyncStore {
  inspect(limiter: string, limit: string, key: string): StateFields | undefined
}

function syncStage(store: Inspectable, rules: readonly Rule[], close: () => void = () => undefined): Stage {
  let nowUs = START_US
  const opened = rules.map((rule) => store.open(scopeOf([rule]), () => nowUs))
  return {
    async apply(step, us) {
      nowUs = us
      const states = opened[rules.indexOf((step.parts[0] as Part).rule)] as (typeof opened)[number]
      states.apply(step, true)
      return step.parts.map(({ verdict }) => verdict)
    },
    fields: async () => store.inspect(NAME, 'default', KEY),
    close,
  }
}

function remoteStage(
  store: AsyncStore,
  rules: readonly Rule[],
  inspected: () => Promise<readonly { readonly state: StateFields }[]>,
  close: () => void = () => undefined,
): Stage {
  const clock = fakeClock()
  const guarded = store.connect({ clock, timeoutUs: Number.POSITIVE_INFINITY, onStoreError: 'throw', localShare: 1, onHealth() {} })
  guarded.open(scopeOf(rules))
  return {
    apply: (step) => guarded.ask(step, (verdicts) => verdicts),
    fields: async () => (await inspected())[0]?.state,
    close,
  }
}

const STAGES: Readonly<Record<string, (rules: readonly Rule[]) => Promise<Stage>>> = {
  memory: async (rules) => syncStage(memoryStore(), rules),
  'shared memory': async (rules) => syncStage(sharedStore({ maxKeys: 10, recordWords: 4_000 }), rules),
  redis: async (rules) => {
    const client = await connectRedis()
    const prefix = `test:${randomUUID()}`
    const inspected = () => inspectKey(client, `${prefix}:${NAME}:{${KEY}}`)
    return remoteStage(redisStore(client, { prefix }), rules, inspected, () => client.close())
  },
  SQLite: async (rules) => {
    const { store, close } = openSqlite()
    return syncStage(store, rules, close)
  },
  Postgres: async (rules) => {
    const owned = sharedTable()
    return remoteStage(owned.store(), rules, () => inspectRows(owned.pool, owned.table, NAME, KEY))
  },
}

function ruleOf({ max, leaseUs }: Numbers): Rule {
  return concurrency(leaseUs === Number.POSITIVE_INFINITY ? { max } : { max, lease: `${leaseUs}us` })[RULE]
}

/** Numbers of two or three plans for one key. */
function drawNumbers(random: Random, isEndless: boolean): Numbers[] {
  const max = random.magnitude(1, 30)
  const leaseUs = random.magnitude(100_000, 60_000_000)
  const numbers = [
    { max, leaseUs },
    { max: max + random.whole(1, 5), leaseUs },
    { max, leaseUs: 2 * leaseUs },
  ]
  return isEndless ? numbers.map((each, k) => ({ ...each, leaseUs: k === 2 ? leaseUs : Number.POSITIVE_INFINITY })) : numbers
}

/** What callers of this trace know: the tokens they were given, and their places in line. */
class Callers {
  readonly tokens: number[] = []
  readonly places: number[] = []

  question(random: Random, numbers: readonly Numbers[], nowUs: number): Question {
    const of = random.pick(numbers)
    const cost = random.weighted([
      [8, 1],
      [3, random.whole(1, of.max)],
      [1, of.max + 1],
      [1, 0],
    ])
    const known = () => (this.tokens.length > 0 && random.chance(0.9) ? random.pick(this.tokens) : nowUs - random.whole(0, 2 * of.leaseUs))
    const op = random.weighted<Question['op']>([
      [10, 'take'],
      [3, 'ask'],
      [6, 'give'],
      [6, 'renew'],
      [5, 'line'],
      [0.1, 'forget'],
    ])
    const finite = (token: number) => Math.max(1, Number.isFinite(token) ? token : nowUs)
    if (op === 'give' && random.chance(0.3) && this.places.length > 0) return { op, numbers: of, cost, token: random.pick(this.places) }
    if (op === 'give') return { op, numbers: of, cost, token: finite(known()) }
    if (op === 'renew' && random.chance(0.5)) return { op, numbers: of, cost: Math.min(cost, of.max), tokens: [finite(known())] }
    if (op === 'renew') return { op, numbers: of, cost: 0, tokens: [...new Set([known(), known(), known()].map(finite))] }
    if (op === 'line' && this.places.length > 0 && random.chance(0.8)) return { op, numbers: of, cost, place: random.pick(this.places) }
    return { op, numbers: of, cost }
  }

  told({ op, cost, place }: Question, { outcome, enteredUs, given }: Verdict): void {
    if (op === 'take' || op === 'line') {
      if (outcome === 'allowed' && cost > 0) this.tokens.push(enteredUs)
      if (op === 'line' && outcome === 'limited' && given === 0) this.places.push(enteredUs)
      if (op === 'line' && outcome !== 'limited' && place !== undefined) this.places.splice(this.places.indexOf(place), 1)
    }
  }
}

function stepOf({ op, cost, token = -1, tokens, place }: Question, rule: Rule, nowUs: number): Step {
  const words = tokens ?? (place === undefined ? undefined : [place])
  const ticket = words && { numbers: rule.numbers, words: Float64Array.from(words) }
  return new Step(op, scopeOf([rule]), [new Part('default', rule, KEY, cost, ticket)], -1, token, nowUs)
}

function nextUs(nowUs: number, leaseUs: number, random: Random): number {
  const stepUs = Number.isFinite(leaseUs) ? leaseUs : 1_000_000
  return Math.max(
    1,
    nowUs +
      random.weighted([
        [6, 0],
        [2, 1],
        [8, random.magnitude(1, Math.ceil(stepUs / 3))],
        [1, stepUs],
        [1, random.whole(1, 3 * stepUs)],
        [0.5, -random.whole(1, stepUs)],
        [0.3, -random.whole(stepUs, 4 * stepUs)],
      ]),
  )
}

/** What a state says of those who still count. */
function liveIn(fields: StateFields | undefined, nowUs: number): string[] {
  const atUs = Math.max(fields?.atUs ?? 0, nowUs)
  return Object.entries(fields ?? {})
    .filter(([name]) => name.endsWith(' until') && (fields?.[name] as number) > atUs)
    .map(([name, untilUs]) => {
      const token = name.slice(0, -' until'.length)
      const capacity = fields?.[`${token} in line for`]
      return capacity === undefined ? `${token}: ${fields?.[token]} until ${untilUs}` : `${token} in line for ${capacity} until ${untilUs}`
    })
}

function liveOf(oracle: ConcurrencyOracle, nowUs: number): string[] {
  return [...oracle.live(nowUs)]
    .sort((a, b) => a.token - b.token)
    .map(({ token, count, capacity, expiresUs }) =>
      capacity === 0 ? `${token}: ${count} until ${expiresUs}` : `${token} in line for ${capacity} until ${expiresUs}`,
    )
}

async function playTrace(
  open: (rules: readonly Rule[]) => Promise<Stage>,
  seed: number,
  steps: number,
  isEndless = false,
): Promise<string[]> {
  const random = new Random(seed)
  const numbers = drawNumbers(random, isEndless)
  const rules = numbers.map(ruleOf)
  const stage = await open(rules)
  const oracle = new ConcurrencyOracle()
  const callers = new Callers()
  const happened: string[] = []
  let nowUs = START_US
  try {
    for (let k = 0; k < steps; k++) {
      const question = callers.question(random, numbers, nowUs)
      nowUs = nextUs(nowUs, question.numbers.leaseUs, random)
      const rule = rules[numbers.indexOf(question.numbers)] as Rule
      const [verdict] = await stage.apply(stepOf(question, rule, nowUs), nowUs)
      const told = oracle.decide(question, nowUs)
      const where = `seed ${seed}, step ${k}: ${JSON.stringify(question)} at ${nowUs}`
      if (verdict !== undefined && told !== undefined) {
        const { outcome, remaining, retryUs, resetUs, enteredUs } = verdict
        const given = ['give', 'renew', 'line'].includes(question.op) ? verdict.given : 0
        expect({ outcome, remaining, retryUs, resetUs, enteredUs, given }, where).toEqual(told)
        callers.told(question, verdict)
        happened.push(`${question.op} ${outcome} ${Math.sign(given ?? 0)}`)
      }
      const fields = await stage.fields()
      expect(liveIn(fields, nowUs), where).toEqual(liveOf(oracle, nowUs))
      if (!oracle.isIdle(nowUs)) expect(fields, where).toMatchObject({ atUs: oracle.atUs, lastToken: oracle.last })
    }
  } finally {
    stage.close()
  }
  return happened
}

/** How many traces: some stores answer later, or write to a file. */
const TRACES: Readonly<Record<string, number>> = { memory: 40, 'shared memory': 25, redis: 4, SQLite: 4, Postgres: 4 }
const tracesOn = (name: string) => Number(process.env.SLUICE_TRACES ?? TRACES[name])

test.each(Object.entries(STAGES))('on %s every step is answered, and leaves the state, as the list of leases does', async (name, open) => {
  const happened = new Set<string>()
  for (let k = 0; k < tracesOn(name); k++) for (const each of await playTrace(open, SEED + k, 250)) happened.add(each)
  // Every way in and out was walked: adopted and lost, kept and new places, released and not found.
  const takes = ['take allowed 0', 'take limited 0', 'take impossible 0', 'give allowed 1', 'give allowed 0', 'give limited 0']
  const others = ['renew allowed 1', 'renew limited 0', 'renew limited 1', 'line allowed 0', 'line limited 0', 'line limited 1']
  for (const each of [...takes, ...others]) expect(happened).toContain(each)
})

test('in memory the same holds without a lease, where only a release helps', async () => {
  const open = STAGES.memory as (rules: readonly Rule[]) => Promise<Stage>
  for (let k = 0; k < tracesOn('memory'); k++) await playTrace(open, SEED + k, 250, true)
})
