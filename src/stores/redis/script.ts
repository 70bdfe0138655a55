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

const MODULES: Readonly<Record<string, { readonly needs: readonly string[]; readonly text: string }>> = lua.LUA_MODULES
const TAKES: Readonly<Record<string, string>> = lua.LUA_TAKES
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
export const LIBRARY: string = withConstants([lua.codec, textsOf([...ALL, 'decide']), CONSTANTS, lua.labels, lua.largeStates].join('\n'))

/** A function for each of these algorithms, by its format. */
function functionsOf(name: string, texts: Readonly<Record<string, string>>, types: readonly string[]): string {
  const own = FORMATS.filter(({ algorithm: { type } }) => types.includes(type))
  return [
    `local ${name} = {}`,
    ...own.map(({ format, algorithm: { type } }) => `${name}[${format}] = function(figures)\n${texts[type]}end`),
  ].join('\n')
}

/** Texts that run.lua makes where they are needed: the takes by one limit, and what decides all else. */
function textOf(types: readonly string[]): string {
  const library = [textsOf([...types, 'decide']), CONSTANTS, lua.labels].join('\n')
  const phases = [functionsOf('phases', PHASES, types), lua.LUA_TAKE_ALL].join('\n')
  const pages = [lua.largeStates, lua.pages].join('\n')
  const run = lua.run
    .replace('--[[PHASES]]', () => phases)
    .replace('--[[LIBRARY]]', () => library)
    .replace('--[[PAGES]]', () => pages)
  return withConstants([lua.codec, functionsOf('takes', TAKES, types), run].join('\n'))
}

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
