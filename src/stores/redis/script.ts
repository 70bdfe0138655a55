/** The whole script that Redis runs: the algorithms, the decision, the runner, in the order in which they need each other. */
import * as lua from './script.generated.ts'

/** The pure part: everything but the I/O. The tests run its functions directly. */
export const LIBRARY = [
  lua.arithmetic,
  lua.level,
  `local bucketFace = ${module(lua.bucket)}`,
  'local algorithms = {}',
  ...Object.entries(lua.ALGORITHMS).map(([type, source]) => `algorithms.${type} = ${module(source)}`),
  lua.decide,
].join('\n')

export const SCRIPT = `${LIBRARY}\n${lua.runner}`

/** A source that returns something, with its local names kept to itself. */
function module(source: string): string {
  return `(function()\n${source}\nend)()`
}

let sha1: Promise<string> | undefined

/** By which name Redis knows the script. Web Crypto, so that this also runs where there is no Node. */
export function scriptSha1(): Promise<string> {
  sha1 ??= digest(SCRIPT)
  return sha1
}

async function digest(text: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest('SHA-1', new TextEncoder().encode(text)))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
