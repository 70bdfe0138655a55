/**
 * Runs Lua in the real Redis on cases that TypeScript runs too. Answers travel as text: a reply
 * would cut numbers to whole ones.
 */
import type { LuaModule } from '../../scripts/lua/generate.mjs'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'
import { startServer } from '../support/redis-servers.ts'

const BATCH = 100
/** A batch takes a second or two. One that never ends is ended. */
const ENDLESS_MS = 60_000

/**
 * A Redis for one file of tests: these scripts run for so long that other tests would miss their
 * answers.
 */
export interface LuaRedis extends TestRedis {
  readonly port: number
}

export async function startRedis(): Promise<LuaRedis> {
  const server = await startServer()
  const client = await connectRedis(server.port)
  return {
    port: server.port,
    send: client.send,
    close: () => {
      client.close()
      void server.kill()
    },
  }
}

/** Texts of modules, in the order in which they were generated. */
export function joined(modules: readonly LuaModule[]): string {
  return modules.map(({ text }) => text).join('\n')
}

const DRIVER = `
-- JSON's lists as arrays of TypeScript: from 0 on, with a length.
local function arrayOf(list)
  local array = { length = #list }
  for k = 1, #list do
    array[k - 1] = list[k]
  end
  return array
end

-- All digits of a number, and arrays by their elements.
local function shown(value)
  if value == nil then
    return 'undefined'
  elseif type(value) == 'number' then
    return string.format('%.17g', value)
  elseif type(value) ~= 'table' then
    return tostring(value)
  end
  local texts = {}
  if value.length then
    for k = 0, value.length - 1 do
      texts[k + 1] = shown(value[k])
    end
    return '[' .. table.concat(texts, ' ') .. ']'
  end
  for name, member in pairs(value) do
    texts[#texts + 1] = name .. ':' .. shown(member)
  end
  table.sort(texts)
  return '{' .. table.concat(texts, ' ') .. '}'
end
`

/** The same text on this side. */
export function shown(value: unknown): string {
  if (typeof value === 'number') return shownNumber(value)
  if (value instanceof Float64Array || Array.isArray(value)) return `[${Array.from(value, shown).join(' ')}]`
  if (typeof value !== 'object' || value === null) return String(value)
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return `{${members
    .map(([name, member]) => `${name}:${shown(member)}`)
    .sort()
    .join(' ')}}`
}

function shownNumber(value: number): string {
  if (Object.is(value, -0)) return '-0'
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf'
  return Number.isInteger(value) ? String(value) : value.toPrecision(17).replace(/0+$/, '')
}

/** What `answer(case)` of the script says to each case, as text. */
export async function inRedis(redis: LuaRedis, script: string, answer: string, cases: readonly unknown[]): Promise<string[]> {
  const text = `${script}\n${DRIVER}\n${answer}
    local answers = {}
    for k = 1, #ARGV do
      answers[k] = answer(cjson.decode(ARGV[k]))
    end
    return answers`
  const answers: string[] = []
  for (let from = 0; from < cases.length; from += BATCH) {
    const batch = cases.slice(from, from + BATCH).map((each) => JSON.stringify(each))
    answers.push(...((await untilEndless(redis.port, redis.send(['EVAL', text, '0', ...batch]))) as string[]))
  }
  return answers
}

async function untilEndless<T>(port: number, answer: Promise<T>): Promise<T> {
  const timer = setTimeout(async () => {
    const other = await connectRedis(port)
    await other.send(['SCRIPT', 'KILL']).finally(() => other.close())
  }, ENDLESS_MS)
  return answer.finally(() => clearTimeout(timer))
}
