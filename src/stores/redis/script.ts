/**
 * The scripts that Redis runs: the algorithms that are needed, the decision, the runner, in the order in which they need each other.
 *
 * Redis makes every function of a script anew for each call, and for a lone decision that is most of the work. So a script holds no more
 * algorithms than it needs, and what few decisions need stands in one function, `longWay`, which makes it when it is called: in each source
 * that is what follows the line `-- The long way.`, or all of it.
 */
import * as lua from './script.generated.ts'

const SOURCES: Readonly<Record<string, string>> = lua.ALGORITHMS
const MARK = '-- The long way.\n'

/** What stands before the mark, and what behind it; without a mark everything is the long way. */
function halves(source: string): [short: string, long: string] {
  const [first, second] = source.split(MARK) as [string, string?]
  return second === undefined ? ['', first] : [first, second]
}

/** The pure part, everything but the I/O, in two halves. */
function libraryOf(types: readonly string[]): [short: string, long: string] {
  const sources = types.map((type) => [type, ...halves(SOURCES[type] as string)] as const)
  const needs = (name: string) => types.some((type) => (SOURCES[type] as string).includes(name))
  const level = needs('levelRuleNamed') || needs('bucketFace') ? lua.level : ''
  const [arithmetic, arithmeticLong] = halves(lua.arithmetic)
  // The long half of a source knows the local names of its short half, so that stands at the top.
  const shorts = sources.filter(([, short]) => short !== '').map(([type, short]) => `${short}\nalgorithms.${type} = ${type}`)
  const longs = sources.map(([type, , long]) => `algorithms.${type} = ${module(long)}`)
  const bucket = needs('bucketFace') ? [`local bucketFace = ${module(lua.bucket)}`] : []
  return [[arithmetic, 'local algorithms = {}', ...shorts].join('\n'), [arithmeticLong, level, ...bucket, ...longs, lua.decide].join('\n')]
}

/** A source that returns something, with its local names kept to itself. */
function module(source: string): string {
  return `(function()\n${source}\nend)()`
}

/** With all algorithms: the tests run its functions directly. */
export const LIBRARY: string = libraryOf(Object.keys(SOURCES)).join('\n')

/** Gives a string for people: what GCRA keeps in bytes as text, everything else as it is. */
export const READ_STRING: string = `${libraryOf(['gcra']).join('\n')}
local raw = redis.call('GET', KEYS[1])
local state, numbers
if raw then
  state, numbers = algorithms.gcra.decode(raw)
end
return state and algorithms.gcra.text(state, numbers) or raw`

export interface Script {
  readonly text: string
  /** By which name Redis knows it; undefined until that is computed. */
  sha1: string | undefined
}

const scripts = new Map<string, Script>()

/** The script that decides by these algorithms, whatever their order. */
export function scriptFor(types: readonly string[]): Script {
  const id = types.join()
  return scripts.get(id) ?? newScript(id, types)
}

function newScript(id: string, types: readonly string[]): Script {
  const sorted = [...types].sort()
  const script = sorted.join() === id ? composed(sorted) : scriptFor(sorted)
  scripts.set(id, script)
  return script
}

function composed(types: readonly string[]): Script {
  const [short, long] = libraryOf(types)
  const [head, rest] = halves(lua.runner)
  const text = [short, head, `local function longWay(nowUs, leastTtlMs, reply)\n${long}\n${lua.longWay}\nend`, rest].join('\n')
  const script: Script = { text, sha1: undefined }
  // Until the name is there, the script itself is sent: nobody waits, and nothing overtakes.
  void digest(text).then((sha1) => {
    script.sha1 = sha1
  })
  return script
}

/** Web Crypto, so that this also runs where there is no Node. */
async function digest(text: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest('SHA-1', new TextEncoder().encode(text)))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
