/**
 * The script that Redis runs, of whole texts: what is decided by one limit, the algorithms with
 * what they need, the decision, the codec, and run.lua, which reads and writes.
 *
 * Redis makes every function of a script anew for each call. So the texts of an algorithm stand
 * where nothing is made of them unless a call needs that algorithm: in branches. Then one script is
 * enough for all calls, and one is all that a server holds of a version of Sluice.
 */
import { MAX_WORDS } from '../../algorithms/codec.ts'
import { KNOWN_FORMATS } from '../../algorithms/formats.ts'
import { FORMATS } from '../../algorithms/list.ts'
import { MAX_FILL_US, MAX_PERIOD_US, MAX_PERMITS } from '../../algorithms/rate.ts'
import * as lua from './script.generated.ts'

type Verb = 'take' | 'charge' | 'settle'

/** How many words a state has, what makes the variables of a rule, and what each verb does. */
type Blocks = { readonly words: number; readonly rule: string } & Readonly<Record<Verb, string>>

const MODULES: Readonly<Record<string, { readonly needs: readonly string[]; readonly text: string }>> = lua.LUA_MODULES
/**
 * What is decided by one limit: of algorithms whose states are short, by blocks of fast-path.lua;
 * of the others, by functions.
 */
const SHORT: Readonly<Record<string, Blocks>> = lua.LUA_SHORT
const LONG: Readonly<Record<string, Readonly<Record<Verb, string>> & { readonly give?: string; readonly renew?: string }>> = lua.LUA_LONG
const PHASES: Readonly<Record<string, string>> = lua.LUA_PHASES
const ALL: readonly string[] = FORMATS.map(({ algorithm }) => algorithm.type)

/** What codec.lua knows from codec.ts. */
const CONSTANTS = `local FORMATS = { ${FORMATS.map(({ format, algorithm }) => `[${format}] = '${algorithm.type}'`).join(', ')} }
local FIGURES = { ${FORMATS.map(({ format, figures }) => `[${format}] = ${figures}`).join(', ')} }
local KNOWN_FORMATS = '${KNOWN_FORMATS}'
local MAX_FIGURE, MAX_PERMITS, MAX_FILL_US, MAX_WORDS = ${[MAX_PERIOD_US, MAX_PERMITS, MAX_FILL_US, MAX_WORDS].join(', ')}`

/**
 * Puts the numbers in their places that a text names in capitals, and leaves its comments out. A
 * function pays for each variable that it uses of those around it, whenever it is made.
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

/**
 * A text in which the lines about a word stand once for each word, with its number in place of N.
 */
function ofEachWord(text: string, words: number): string {
  const tagged = text.replace(/ *--\[\[TAG\]\]\n/g, () => lua.wordTag)
  return tagged.replace(/--\[\[WORDS\]\]\n([\s\S]*?)--\[\[END\]\]\n/g, (_, lines: string) => {
    return Array.from({ length: words }, (_each, k) => lines.replace(/\b([a-z]?)N\b/g, `$1${k + 1}`)).join('')
  })
}

/** codec.lua, in which the first four words of a state have a tag each. */
const CODEC = ofEachWord(lua.codec, 4)

/** The pure part, with all algorithms: the tests run its functions directly. */
export const LIBRARY: string = withConstants(
  [lua.tags, CODEC, textsOf([...ALL, 'decide']), CONSTANTS, lua.labels, lua.largeStates].join('\n'),
)

/** A branch for each algorithm that has such a text, by its format. */
function branchesOf(textOf: (type: string) => string | undefined): string {
  const texts = FORMATS.map(({ format, algorithm: { type } }) => [format, textOf(type)] as const).filter(([, text]) => text !== undefined)
  return `${texts.map(([format, text], k) => `${k === 0 ? '' : 'else'}if format == ${format} then\n${text}\n`).join('')}end`
}

/** The functions of an algorithm whose states are long, a branch for each verb. */
function longOf(type: string): string | undefined {
  const texts = LONG[type]
  if (texts === undefined) return undefined
  const { take, charge, settle, give, renew } = texts
  const released = give === undefined ? '' : `elseif verb == 'g' then\n${give}\nelseif verb == 'r' then\n${renew}\n`
  return `if verb == 't' then\n${take}\nelseif verb == 'c' then\n${charge}\n${released}else\n${settle}\nend`
}

/** fast-path.lua for each algorithm whose states are short. */
function shorts(): string {
  return FORMATS.map(({ format, algorithm: { type } }) => {
    const blocks = SHORT[type]
    return blocks === undefined ? '' : shortOf(format, blocks)
  }).join('')
}

function shortOf(format: number, { words, rule, take, charge, settle }: Blocks): string {
  return ofEachWord(lua.short, words)
    .replace('--[[FORMAT]]', `${format}`)
    .replace('--[[MOST TAG]]', words < 4 ? '0' : '15')
    .replace('--[[RULE]]', () => rule)
    .replace('--[[TAKE]]', () => take)
    .replace('--[[CHARGE]]', () => charge)
    .replace('--[[SETTLE]]', () => settle)
}

/** An algorithm with the modules that it needs. */
function moduleOf(type: string): string {
  const names = [...(MODULES[type]?.needs ?? []).filter((name) => name !== 'prelude'), type]
  return names.map((name) => MODULES[name]?.text).join('\n')
}

/** What run.lua makes only where it is needed. */
function slowText(): string {
  const algorithms = branchesOf(moduleOf)
  const library = [textsOf(['decide']), CONSTANTS, lua.labels.replace('--[[ALGORITHM]]', () => algorithms)]
  const general = lua.general
    .replace('--[[PHASES]]', () => branchesOf((type) => PHASES[type]))
    .replace('--[[TAKE ALL]]', () => lua.LUA_TAKE_ALL)
    .replace('--[[LIBRARY]]', () => library.join('\n'))
  const long = lua.long.replace('--[[LONG]]', () => branchesOf(longOf))
  const large = [lua.largeStates, lua.pages].join('\n')
  const slow = lua.slow.replace('--[[PAGES]]', () => large).replace('--[[GENERAL PATH]]', () => general)
  return [CODEC, slow, long].join('\n')
}

function scriptText(): string {
  const run = lua.run.replace('--[[SLOW PATH]]', () => slowText()).replace('--[[SHORT]]', () => shorts())
  return withConstants([lua.tags, run].join('\n'))
}

export interface Script {
  readonly text: string
  /** The name that Redis knows it by; undefined until that is computed, and where it cannot be. */
  sha1: string | undefined
  /** Fulfilled when the name is there, or when it is known that there is none. */
  readonly named: Promise<void>
}

let made: Script | undefined

export function script(): Script {
  made ??= newScript()
  return made
}

function newScript(): Script {
  const text = scriptText()
  const script: Script = {
    text,
    sha1: undefined,
    named: digest(text).then(
      (sha1) => {
        script.sha1 = sha1
      },
      // A page that is not served over TLS has no Web Crypto.
      () => undefined,
    ),
  }
  return script
}

/** Web Crypto, so that this also runs where there is no Node. */
async function digest(text: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest('SHA-1', new TextEncoder().encode(text)))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
