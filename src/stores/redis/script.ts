/**
 * The scripts that Redis runs: the algorithms that are needed with what they need, the decision, the codec, and run.lua, which reads and writes.
 *
 * Redis makes every function of a script anew for each call, so a script holds no more algorithms than it needs: there is one for each
 * algorithm, one for each two, and one with all. That bounds how many a server may come to hold: 22.
 */
import { MAX_WORDS } from '../../algorithms/codec.ts'
import { FORMATS, KNOWN_FORMATS } from '../../algorithms/formats.ts'
import { MAX_FILL_US, MAX_PERIOD_US, MAX_PERMITS } from '../../algorithms/rate.ts'
import * as lua from './script.generated.ts'

type Verb = 'take' | 'charge' | 'settle'

/** How many words a state has, what makes the variables of a rule, and what each verb does. */
type Blocks = { readonly words: number; readonly rule: string } & Readonly<Record<Verb, string>>

const MODULES: Readonly<Record<string, { readonly needs: readonly string[]; readonly text: string }>> = lua.LUA_MODULES
/** What is decided by one limit: of algorithms whose states are short, by blocks of short.lua; of the others, by functions. */
const SHORT: Readonly<Record<string, Blocks>> = lua.LUA_SHORT
const LONG: Readonly<Record<string, Readonly<Record<Verb, string>>>> = lua.LUA_LONG
const PHASES: Readonly<Record<string, string>> = lua.LUA_PHASES
const ALL: readonly string[] = FORMATS.map(({ algorithm }) => algorithm.type)
/** How many algorithms a script holds that does not hold all. */
const MOST_APART = 2

/** What codec.lua knows from codec.ts. */
const CONSTANTS = `local FORMATS = { ${FORMATS.map(({ format, algorithm }) => `[${format}] = '${algorithm.type}'`).join(', ')} }
local FIGURES = { ${FORMATS.map(({ format, figures }) => `[${format}] = ${figures}`).join(', ')} }
local KNOWN_FORMATS = '${KNOWN_FORMATS}'
local MAX_FIGURE, MAX_PERMITS, MAX_FILL_US, MAX_WORDS = ${[MAX_PERIOD_US, MAX_PERMITS, MAX_FILL_US, MAX_WORDS].join(', ')}`

/**
 * Puts the numbers in their places that a text names in capitals, and leaves its comments out. A function pays for each variable that it uses
 * of those around it, whenever it is made.
 */
function withConstants(text: string): string {
  const values = new Map<string, string>()
  const code = text
    .replace(/^ *--(?!\[).*\n|^ +/gm, '')
    .replace(/^local ([A-Z_, ]+) = ([\d., -]+)\n/gm, (_, names: string, numbers: string) => {
      const all = numbers.split(', ')
      names.split(', ').forEach((name, k) => {
        values.set(name, all[k] as string)
      })
      return ''
    })
  return code.replace(/\b[A-Z][A-Z_]+\b/g, (name) => values.get(name) ?? name)
}

/** Whole texts, each behind those that it needs. */
function textsOf(wanted: readonly string[]): string {
  const needed = new Set(wanted.flatMap((name) => [...(MODULES[name]?.needs ?? []), name]))
  const names = Object.keys(MODULES).filter((name) => needed.has(name))
  return names.map((name) => MODULES[name]?.text).join('\n')
}

/** The pure part, with all algorithms: the tests run its functions directly. */
export const LIBRARY: string = withConstants(
  [lua.tags, lua.codec, textsOf([...ALL, 'decide']), CONSTANTS, lua.labels, lua.largeStates].join('\n'),
)

/** For each of these algorithms, by its format, what stands for it in Lua. */
function tableOf(name: string, types: readonly string[], textOf: (type: string) => string | undefined): string {
  const lines = FORMATS.map(({ format, algorithm: { type } }) => [format, types.includes(type) ? textOf(type) : undefined])
  return [`local ${name} = {}`, ...lines.flatMap(([format, text]) => (text === undefined ? [] : [`${name}[${format}] = ${text}`]))].join(
    '\n',
  )
}

const functionOf = (text: string | undefined) => `function(figures)\n${text}end`

/** The functions of an algorithm whose states are long, by verb. */
function longOf(type: string): string | undefined {
  const texts = LONG[type]
  return (
    texts &&
    `{\n${Object.entries(texts)
      .map(([verb, text]) => `${verb} = ${functionOf(text)},\n`)
      .join('')}}`
  )
}

/** short.lua for each of these algorithms whose states are short. */
function shortsOf(types: readonly string[]): string {
  return FORMATS.map(({ format, algorithm: { type } }) => {
    const blocks = types.includes(type) ? SHORT[type] : undefined
    return blocks === undefined ? '' : shortOf(format, blocks)
  }).join('')
}

function shortOf(format: number, { words, rule, take, charge, settle }: Blocks): string {
  return lua.short
    .replace(/--\[\[WORDS\]\]\n([\s\S]*?)--\[\[END\]\]\n/g, (_, lines: string) => {
      return Array.from({ length: words }, (_each, k) => lines.replace(/\b([a-z])N\b/g, `$1${k + 1}`)).join('')
    })
    .replace('--[[FORMAT]]', `${format}`)
    .replace('--[[MOST TAG]]', words < 4 ? '0' : '15')
    .replace('--[[RULE]]', () => rule)
    .replace('--[[TAKE]]', () => take)
    .replace('--[[CHARGE]]', () => charge)
    .replace('--[[SETTLE]]', () => settle)
}

/** What run.lua makes only where it is needed. */
function restOf(types: readonly string[]): string {
  const rest = lua.rest
    .replace('--[[PHASES]]', () => [tableOf('phases', types, (type) => functionOf(PHASES[type])), lua.LUA_TAKE_ALL].join('\n'))
    .replace('--[[LIBRARY]]', () => [textsOf([...types, 'decide']), CONSTANTS, lua.labels].join('\n'))
    .replace('--[[PAGES]]', () => [lua.largeStates, lua.pages].join('\n'))
  return [lua.tags, lua.codec, tableOf('longs', types, longOf), rest].join('\n')
}

function textOf(types: readonly string[]): string {
  const run = lua.run.replace('--[[REST]]', () => restOf(types)).replace('--[[SHORT]]', () => shortsOf(types))
  return withConstants([lua.tags, run].join('\n'))
}

export interface Script {
  readonly text: string
  /** By which name Redis knows it; undefined until that is computed. */
  sha1: string | undefined
}

const scripts = new Map<string, Script>()

/** The script that decides by these algorithms, whatever their order. */
export function scriptFor(types: readonly string[]): Script {
  const id = types.length === 1 ? (types[0] as string) : types.join()
  return scripts.get(id) ?? newScript(id, types)
}

function newScript(id: string, types: readonly string[]): Script {
  const held = types.length > MOST_APART ? ALL : ALL.filter((type) => types.includes(type))
  const script = held.join() === id ? composed(held) : scriptFor(held)
  scripts.set(id, script)
  return script
}

function composed(types: readonly string[]): Script {
  const text = textOf(types)
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
