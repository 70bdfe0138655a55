/**
 * The scripts that Redis runs: the algorithms that are needed, the decision, the runner, in the order in which they need each other.
 *
 * Redis makes every function of a script anew for each call, and for a lone decision that is most of the work. So a script holds no more
 * algorithms than it needs, and of each only the short form of what most decisions do: in a source that is what stands before the line
 * `-- The long way.` Everything is in one function besides, `longWay`, which makes it when it is called. And a lone decision comes first.
 */
import * as lua from './script.generated.ts'

const SOURCES: Readonly<Record<string, string>> = lua.ALGORITHMS
const MARK = '-- The long way.\n'

/** The algorithms whose states are strings in Redis. Those of named limits may share a key: see sections.lua. */
export const STRINGS: readonly string[] = ['fixedWindow', 'gcra']

/** What stands before the mark, and what behind it; without a mark everything is the long way. */
function halves(source: string): [short: string, long: string] {
  const [first, second] = source.split(MARK) as [string, string?]
  return second === undefined ? ['', first] : [first, second]
}

/** The pure part, everything but the I/O. */
function libraryOf(types: readonly string[]): string {
  const level = need(types, 'levelRuleNamed') || need(types, 'bucketFace') ? lua.level : ''
  const packed = need(types, 'bytesFor') ? lua.packed : ''
  const bucket = need(types, 'bucketFace') ? `local bucketFace = ${module(lua.bucket)}` : ''
  const algorithms = types.map((type) => `algorithms.${type} = ${module(SOURCES[type] as string)}`)
  return [lua.arithmetic, packed, level, bucket, 'local algorithms = {}', ...algorithms, lua.decide].join('\n')
}

/** Whether the source of one of them uses a name of a source that several use. */
function need(types: readonly string[], name: string): boolean {
  return types.some((type) => (SOURCES[type] as string).includes(name))
}

/** What decides shortly, and nothing else. */
function shortFormsOf(types: readonly string[]): string {
  const shorts = types.map((type) => [type, halves(SOURCES[type] as string)[0]] as const).filter(([, short]) => short !== '')
  const forms = shorts.map(([type, short]) => `${short}\nshortForms.${type} = shortForm`)
  return ['local shortForms = {}', ...forms].join('\n')
}

/**
 * What a lone decision may end with already. Its short form, `takeOnce`, is the same without the function that it would make for many takes: it
 * takes as it stands.
 */
function loneFormOf(types: readonly string[]): string {
  const [short] = halves(SOURCES[types[0] as string] as string)
  const inner = /return function\((\w+), from, to\)/
  const [, held] = inner.exec(short) ?? []
  if (types.length !== 1 || held === undefined) return ''
  const takeOnce = short
    .replace('shortForm(numbers, cost, nowUs)', `takeOnce(numbers, cost, nowUs, ${held}, from, to)`)
    .replace(inner, 'do')
  return `do\n${takeOnce}\n${lua.lone}\nend`
}

/** A source that returns something, with its local names kept to itself. */
function module(source: string): string {
  return `(function()\n${source}\nend)()`
}

/** With all algorithms: the tests run its functions directly. */
export const LIBRARY: string = libraryOf(Object.keys(SOURCES))

/** Gives a string for people: states as text, sections as a list of names and texts, everything else as it is. */
export const READ_STRING: string = `${libraryOf(STRINGS)}
${lua.sections}
local function textOf(raw)
  for _, algorithm in pairs(algorithms) do
    local state, numbers = algorithm.decode(raw)
    if state then
      return algorithm.text(state, numbers)
    end
  end
  return raw
end
local raw = redis.call('GET', KEYS[1])
local names, states = sectionsIn(raw or '')
if not names then
  return raw and textOf(raw)
end
local texts = {}
for _, name in ipairs(names) do
  texts[#texts + 1] = name
  texts[#texts + 1] = textOf(states[name])
end
return texts`

export interface Script {
  readonly text: string
  /** By which name Redis knows it; undefined until that is computed. */
  sha1: string | undefined
}

const scripts = new Map<string, Script>()
const scriptsOfSections = new Map<string, Script>()

/** The script that decides by these algorithms, whatever their order. One for sections knows all algorithms of which one may find a section. */
export function scriptFor(types: readonly string[], hasSections = false): Script {
  const known = hasSections ? scriptsOfSections : scripts
  const id = types.join()
  return known.get(id) ?? newScript(known, id, types, hasSections)
}

function newScript(known: Map<string, Script>, id: string, types: readonly string[], hasSections: boolean): Script {
  const needed = [...new Set(hasSections ? [...types, ...STRINGS] : types)].sort()
  const script = needed.join() === id ? composed(needed, hasSections) : scriptFor(needed, hasSections)
  known.set(id, script)
  return script
}

function composed(types: readonly string[], hasSections: boolean): Script {
  const [head, rest] = halves(lua.runner)
  // It stands for itself, because each name that it knew from outside would have to be made known to it in each call.
  const longWay = `local function longWay(nowUs, leastTtlMs, reply)\n${libraryOf(types)}\n${lua.sections}\n${lua.longWay}\nend`
  const sections = hasSections ? [lua.sections, lua.sectionForms] : []
  const packed = need(types, 'bytesFor') ? halves(lua.packed)[0] : ''
  const lone = hasSections ? '' : loneFormOf(types)
  const text = [halves(lua.arithmetic)[0], packed, lone, shortFormsOf(types), head, ...sections, longWay, rest].join('\n')
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
