/**
 * The code of a guide as its readers paste it, with the servers of a test in place of those in the
 * text.
 */
import { readFileSync } from 'node:fs'
import * as sluice from '../../src/index.ts'
import * as sluiceRedis from '../../src/stores/redis/index.ts'

interface Address {
  readonly host: string
  readonly port: number
}

type Values = Readonly<Record<string, unknown>>

const AsyncFunction = (async () => undefined).constructor as new (...parts: string[]) => (...values: unknown[]) => Promise<Values>

/**
 * Runs the only `ts` block of a page that has this text in it, and gives what it calls by these
 * names. `servers`: by the name of a host in the block. `modules`: what it imports besides Sluice.
 */
export async function ranFromGuide(
  page: string,
  having: string,
  names: readonly string[],
  servers: Readonly<Record<string, Address>>,
  modules: Readonly<Record<string, object>>,
): Promise<Values> {
  const text = readFileSync(new URL(`../../docs/guides/${page}`, import.meta.url), 'utf8')
  const blocks = [...text.matchAll(/^```ts[^\n]*\n(.*?)^```/gms)].map(([, code]) => code as string)
  const [block, second] = blocks.filter((code) => code.includes(having))
  if (block === undefined || second !== undefined) throw new Error(`${page} must have one block with ${having}`)
  const code = withServers(asScript(block), servers)
  const known = { sluice, 'sluice/redis': sluiceRedis, ...modules }
  const quiet = { log() {}, warn() {}, error() {} }
  return new AsyncFunction('modules', 'console', `${code}\nreturn { ${names.join(', ')} }`)(known, quiet)
}

/** All that TypeScript has in it are imports, and the types of parameters. */
function asScript(code: string): string {
  return code.replace(/^import (\{.*?\}) from ('.*?')$/gm, 'const $1 = modules[$2]').replace(/\((\w+): \w+\) =>/g, '($1) =>')
}

function withServers(code: string, servers: Readonly<Record<string, Address>>): string {
  return code.replace(/([\w.]+\.internal)(', port: |:)\d+/g, (_, name: string, between: string) => {
    const server = servers[name]
    if (server === undefined) throw new Error(`the guide has a host that the test does not have: ${name}`)
    return `${server.host}${between}${server.port}`
  })
}
