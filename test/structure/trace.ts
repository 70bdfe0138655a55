/**
 * Which functions of src a scenario calls, in their order, and from which file. The sources are
 * bundled with a note at the beginning and the end of every function that has a name, and the
 * bundle is imported: what runs is the code itself.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build, type Plugin } from 'rolldown'
import { parseAst } from 'rolldown/parseAst'

const root = fileURLToPath(new URL('../../', import.meta.url))
const src = join(root, 'src')

/**
 * Where a function is, and the file of the one that called it; undefined if that had ended, as one
 * has that awaited something.
 */
export interface Call {
  readonly file: string
  readonly name: string
  readonly from: string | undefined
}

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [field: string]: unknown
}

const calls: Call[] = []
const running: string[] = []

function noteCall(file: string, name: string): void {
  calls.push({ file, name, from: running.at(-1) })
  running.push(file)
}

function noteReturn(): void {
  running.pop()
}

function inCall<T>(file: string, name: string, run: () => T): T {
  noteCall(file, name)
  try {
    return run()
  } finally {
    noteReturn()
  }
}

Object.assign(globalThis, { noteCall, noteReturn, inCall })

/** The exports of `entry`, which is TypeScript that imports from src, with notes in them. */
export async function traced<T>(entry: string): Promise<T> {
  const folder = mkdtempSync(join(root, 'node_modules/.walks-'))
  try {
    const file = join(folder, 'bundle.mjs')
    const source: Plugin = {
      name: 'walks',
      resolveId: (id) => (id === 'walk:entry' ? { id: join(root, 'walk-entry.ts') } : null),
      load: (id) => (id === join(root, 'walk-entry.ts') ? entry : null),
      transform: (code, id) => (id.startsWith(src) ? noted(code, relative(src, id)) : null),
    }
    await build({
      input: 'walk:entry',
      cwd: root,
      platform: 'node',
      plugins: [source],
      output: { file, format: 'esm' },
      external: /^[^./w]/,
    })
    return (await import(pathToFileURL(file).href)) as T
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Runs something, and tells what was called. */
export async function callsOf(run: () => unknown): Promise<Call[]> {
  calls.length = 0
  await run()
  return calls.splice(0)
}

function noted(code: string, path: string): string {
  const places: { readonly at: number; readonly text: string }[] = []
  const visit = (node: Node, name: string | undefined): void => {
    const body = node.body as Node | null | undefined
    const place = `${JSON.stringify(path)},${JSON.stringify(name)}`
    const note = `globalThis.noteCall(${place});`
    if (/Function/.test(node.type) && name !== undefined && body && body.end > body.start + 2) {
      const isBlock = body.type === 'BlockStatement'
      // What awaits or yields goes on when others have run: it is only noted that it began.
      const begin = node.async || node.generator ? `${note}globalThis.noteReturn();{` : `${note}try{`
      const end = node.async || node.generator ? '}' : '}finally{globalThis.noteReturn()}'
      if (isBlock) places.push({ at: body.start + 1, text: begin }, { at: body.end - 1, text: end })
      else if (!node.async) places.push({ at: body.start, text: `globalThis.inCall(${place},()=>(` }, { at: body.end, text: '))' })
    }
    for (const [field, value] of Object.entries(node)) {
      for (const child of Array.isArray(value) ? value : [value]) {
        if (typeof child === 'object' && child !== null && typeof (child as Node).type === 'string')
          visit(child as Node, nameIn(node, field, child as Node))
      }
    }
  }
  visit(parseAst(code, { lang: 'ts' }) as unknown as Node, undefined)
  places.sort((a, b) => b.at - a.at)
  return places.reduce((text, place) => text.slice(0, place.at) + place.text + text.slice(place.at), code)
}

/**
 * What a function is called where it stands. Getters, constructors and what is passed on at once
 * have no name here.
 */
function nameIn(parent: Node, field: string, child: Node): string | undefined {
  if (child.type === 'FunctionDeclaration') return nameOf(child.id as Node)
  if (field === 'value' && parent.type === 'MethodDefinition' && parent.kind === 'method') return nameOf(parent.key as Node)
  if (field === 'value' && /^Property/.test(parent.type) && parent.kind !== 'get') return nameOf(parent.key as Node)
  if (field === 'init' && parent.type === 'VariableDeclarator') return nameOf(parent.id as Node)
  return undefined
}

function nameOf(key: Node): string | undefined {
  return key.type === 'PrivateIdentifier' ? `#${String(key.name)}` : (key.name as string | undefined)
}
