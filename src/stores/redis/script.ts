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
import { MAX_PERIOD_US } from '../../algorithms/rate.ts'
import * as lua from './script.generated.ts'

type Verb = 'take' | 'charge' | 'settle'

/**
 * How many words a state has, which variable has the window, what makes the variables of a rule,
 * and what each verb does.
 */
type Blocks = { readonly words: number; readonly windowUs: string; readonly rule: string } & Readonly<Record<Verb, string>>

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
const.MAX_FIGURE, const.MAX_WORDS = ${MAX_PERIOD_US}, ${MAX_WORDS}`

/**
 * Puts values in the places that a text has for them, which are named by words that stand nowhere
 * else: `--[[NAME]]` for Lua, `const.NAME` for a number, `_k` for the number of a word.
 */
function filled(text: string, values: Readonly<Record<string, string | number>>): string {
  return Object.entries(values).reduce((made, [name, value]) => made.replaceAll(name, () => `${value}`), text)
}

/**
 * Puts in the numbers that lines such as `const.WIDEST, const.BACK = 7, 8` declare, and leaves
 * out those lines, comments and indentation. As variables the numbers would cost time: a function
 * pays for each that it uses of those around it, whenever it is made.
 */
function withConstants(text: string): string {
  const lines = text.split('\n').map((line) => line.trimStart())
  const declared = lines.filter(isDeclaration).flatMap(numbersIn)
  // A name may be the beginning of another: the longest first.
  const numbers = Object.fromEntries(declared.sort(([one], [other]) => other.length - one.length))
  const code = lines.filter((line) => !isDeclaration(line) && !isComment(line))
  // Few lines name a number, and there are many numbers.
  return code.map((line) => (line.includes('const.') ? filled(line, numbers) : line)).join('\n')
}

function isDeclaration(line: string): boolean {
  return line.startsWith('const.')
}

function isComment(line: string): boolean {
  return line.startsWith('--') && !line.startsWith('--[[')
}

function numbersIn(declaration: string): (readonly [string, string])[] {
  const [names, numbers] = declaration.split(' = ').map((side) => side.split(', ')) as [string[], string[]]
  return names.map((name, k) => [name, numbers[k] as string])
}

/** Whole texts, each behind those that it needs. */
function textsOf(wanted: readonly string[]): string {
  const needed = new Set(wanted.flatMap((name) => [...(MODULES[name]?.needs ?? []), name]))
  const names = Object.keys(MODULES).filter((name) => needed.has(name))
  return names.map((name) => MODULES[name]?.text).join('\n')
}

/** A text about one word, once for each. */
function ofEachWord(text: string, words: number): string {
  return Array.from({ length: words }, (_, k) => filled(text, { _k: k + 1 }).trimEnd()).join('\n')
}

/** codec.lua, in which the first four words of a state have a tag each. */
const CODEC = filled(lua.codec, {
  '--[[WORDS BY TAGS]]': ofEachWord(lua.wordByTag, 4),
  '--[[TAGS OF WORDS]]': ofEachWord(lua.wordTag, 4),
})

/** The pure part, with all algorithms: the tests run its functions directly. */
export function libraryText(): string {
  return withConstants([lua.tags, CODEC, textsOf([...ALL, 'decide']), CONSTANTS, lua.labels, lua.largeStates].join('\n'))
}

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

/** Whether the words of a state can be one: of a fixed window, and of a level. */
const IS_COUNT = 's3 <= const.MOST_COUNT'
const IS_LEVEL = 's2 < figures[1] and (s1 - s3) * figures[1] <= const.MOST_UNITS'

function shortOf(format: number, { words, windowUs, rule, take, charge, settle }: Blocks): string {
  return filled(lua.short, {
    '--[[FORMAT]]': format,
    '--[[MOST TAG]]': words < 4 ? 0 : 15,
    '--[[WORDS BY TAGS]]': ofEachWord(lua.shortWord, words),
    '--[[IS STATE]]': words < 4 ? IS_LEVEL : IS_COUNT,
    '--[[TAGS OF WORDS]]': ofEachWord(lua.wordTag, words),
    '--[[RULE]]': rule,
    '--[[WINDOW]]': windowUs,
    '--[[TAKE]]': take,
    '--[[CHARGE]]': charge,
    '--[[SETTLE]]': settle,
  })
}

/** An algorithm with the modules that it needs. */
function moduleOf(type: string): string {
  const names = [...(MODULES[type]?.needs ?? []).filter((name) => name !== 'prelude'), type]
  return names.map((name) => MODULES[name]?.text).join('\n')
}

/** What run.lua makes only where it is needed. */
function slowText(): string {
  const labels = filled(lua.labels, { '--[[ALGORITHM]]': branchesOf(moduleOf) })
  const general = filled(lua.general, {
    '--[[PHASES]]': branchesOf((type) => PHASES[type]),
    '--[[TAKE ALL]]': lua.LUA_TAKE_ALL,
    '--[[LIBRARY]]': [textsOf(['decide']), CONSTANTS, labels].join('\n'),
  })
  const long = filled(lua.long, { '--[[LONG]]': branchesOf(longOf) })
  const slow = filled(lua.slow, { '--[[PAGES]]': [lua.largeStates, lua.pages].join('\n'), '--[[GENERAL PATH]]': general })
  return [CODEC, slow, long].join('\n')
}

function scriptText(): string {
  const run = filled(lua.run, { '--[[SLOW PATH]]': slowText(), '--[[SHORT]]': shorts() })
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
