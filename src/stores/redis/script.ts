/** The scripts that Redis runs: the algorithms that are needed, the decision, the runner, in the order in which they need each other. */
import * as lua from './script.generated.ts'

const SOURCES: Readonly<Record<string, string>> = lua.ALGORITHMS

/** The pure part: everything but the I/O. The tests run its functions directly. */
export function libraryOf(types: readonly string[]): string {
  const sources = types.map((type) => [type, SOURCES[type] as string] as const)
  // Every function of a script is made anew for each call, so a script holds no more than it needs.
  const needs = (name: string) => sources.some(([, source]) => source.includes(name))
  return [
    lua.arithmetic,
    ...(needs('levelRuleNamed') || needs('bucketFace') ? [lua.level] : []),
    ...(needs('bucketFace') ? [`local bucketFace = ${module(lua.bucket)}`] : []),
    'local algorithms = {}',
    ...sources.map(([type, source]) => `algorithms.${type} = ${module(source)}`),
    lua.decide,
  ].join('\n')
}

/** With all algorithms. */
export const LIBRARY: string = libraryOf(Object.keys(SOURCES))

/** A source that returns something, with its local names kept to itself. */
function module(source: string): string {
  return `(function()\n${source}\nend)()`
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
  const sorted = [...types].sort()
  const script = sorted.join() === id ? composed(sorted) : scriptFor(sorted)
  scripts.set(id, script)
  return script
}

function composed(types: readonly string[]): Script {
  const script: Script = { text: `${libraryOf(types)}\n${lua.runner}`, sha1: undefined }
  // Until the name is there, the script itself is sent: nobody waits, and nothing overtakes.
  void digest(script.text).then((sha1) => {
    script.sha1 = sha1
  })
  return script
}

/** Web Crypto, so that this also runs where there is no Node. */
async function digest(text: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest('SHA-1', new TextEncoder().encode(text)))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
