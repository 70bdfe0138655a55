// Turns modules of TypeScript into Lua 5.1: see docs/decisions/lua-from-typescript.md for the part
// of the language that is understood.
import { basename } from 'node:path'
import { expression, keyOf, keyText } from './expressions.mjs'
import { camelCase, isTaken, localName, PRELUDE, preludeFor } from './names.mjs'
import { Program } from './program.mjs'
import { docAbove, fail } from './source.mjs'
import { phasesFunction, plainFunction, takeAllFunction } from './take.mjs'
import { Writer } from './writer.mjs'

/** Members of an algorithm that only TypeScript calls. */
const NOT_IN_LUA = new Set(['fields', 'heldWords', 'isState', 'hasToken', 'bookedAhead'])

/** The functions that every script starts with. */
export const prelude = PRELUDE

/**
 * The Lua of some modules and of all that they use, each before those that use it:
 * `{ name, path, text, needs }`, where `needs` are the names of the modules whose texts have to
 * stand before it, in that order.
 *
 * @param options.root the URL that paths start from
 * @param options.entries the modules to begin with: `{ path, roots }`, roots being the names of
 * functions or of the algorithm. Their functions are hidden from the rest of the script, except the
 * roots.
 */
export function generateLua({ root, entries }) {
  const passed = new Set()
  for (;;) {
    const known = passed.size
    const modules = new Generation(new Program(root), entries, passed).modules()
    // An array that turned out to be passed on is a table everywhere, so what was written before
    // that is written again.
    if (passed.size === known) return modules
  }
}

/** What is decided by one limit on a state under the caller's rule, without `decide`. */
const VERBS = ['take', 'charge', 'settle']
/** The same of what is in use until it is released. */
const RELEASED_VERBS = ['take', 'charge', 'settle', 'give', 'renew']

/** What the block of a verb assigns. */
const TOLD = 'changed, outcome, remaining, retryUs, resetUs, delayUs, enteredUs, given'

/**
 * What one algorithm decides by one limit: `decide`, with what it calls put in place. For each verb
 * there is a block. It uses the words of a state, `isHeld`, `cost`, `nowUs`, and to settle `ofUs`
 * and, of what can be booked ahead, `drainedUs`. It assigns `changed` and the verdict: outcome,
 * remaining, retryUs, resetUs, delayUs, enteredUs, given. The state is one under the rule.
 *
 * Where a state has four words at most, those are `s1` to `s4`, and the answer is `{ words,
 * windowUs, rule, take, charge, settle }`: how many there are; the variable that has the window;
 * what makes the variables of a rule out of its `figures`; and the blocks. Otherwise it is `{ take,
 * charge, settle }`, and of what is in use until it is released `give` and `renew` too, each the
 * body of a function of the figures. It returns `each(s, isHeld, cost, nowUs, ofUs, tokens)`, which
 * answers what the block assigns; how many words a state may have, how many a new one has, the
 * window, and `neededWords(s)` if states grow. Words stand in `s` from 1 on.
 *
 * @param options.decide the path of the module of `decide`
 * @param options.algorithm the path of the algorithm's module, and its name there
 */
export function generatePlain(options) {
  const [rule, take, charge, settle, [words, , windowUs, isInVariables]] = plainSections(options, VERBS)
  if (isInVariables === 'true') return { words: Number(words), windowUs, rule, take, charge, settle }
  const verbs = isReleased(options) ? RELEASED_VERBS : VERBS
  return Object.fromEntries(verbs.map((verb) => [verb, plainBody(options, verb)]))
}

function isReleased({ root, algorithm: { path, name } }) {
  const program = new Program(root)
  const { node } = program.binding(program.source(path), name, { start: 0 })
  return node.init.properties.some(({ key, value }) => key?.name === 'untilReleased' && value.value === true)
}

function plainBody(options, verb) {
  const [rule, block, [words, freshWords, windowUs, , ...needed]] = plainSections(options, [verb])
  const body = `local ${TOLD}\n${block}return ${TOLD}\n`
  return `${rule}local function each(s, isHeld, cost, nowUs, ofUs, tokens)\n${body}end\nreturn ${['each', words, freshWords, windowUs, ...needed].join(', ')}\n`
}

function plainSections({ root, decide, algorithm }, verbs) {
  const functionOf = (...of) => plainFunction(...of, verbs)
  const sections = generated(root, (generation) => generation.madeBy(functionOf, decide, algorithm))
  const values = sections.pop().trim().slice('return '.length)
  return [...sections, values.split(', ')]
}

/**
 * What a take by several limits does with the cell of one algorithm, in two functions. The text is
 * the body of a function of the rule's figures. It returns `agree(cell, nowUs, granted)`,
 * `finish(cell, nowUs, isTaken)`, how many words a state may have and how many a new one has, the
 * window, and `neededWords(s)` if states grow. Of the cell they need what `decide` needs; its rule
 * is not read.
 */
export function generatePhases({ root, decide, algorithm }) {
  const [text] = generated(root, (generation) => generation.madeBy(phasesFunction, decide, algorithm))
  return text
}

/**
 * `takeAll(cells, nowUs)`, which is `decide` for a take: it calls `agree` and `finish` of each
 * cell.
 */
export function generateTakeAll({ root, decide }) {
  return generated(root, (generation) => generation.takeAll(decide))
}

function generated(root, make) {
  const passed = new Set()
  for (;;) {
    const known = passed.size
    const made = make(new Generation(new Program(root), [], passed))
    if (passed.size === known) return made
  }
}

class Generation {
  #entries
  #modules = new Map()
  #written = new Map()

  /** `passed`: keys of the arrays that are passed to functions or indexed by variables. */
  constructor(program, entries, passed) {
    this.program = program
    this.passed = passed
    this.#entries = new Map(entries.map((each) => [each.path, each]))
  }

  modules() {
    for (const { path, roots } of this.#entries.values()) this.#entry(this.program.source(path), roots)
    this.#refuseTwins()
    const inOrder = new Set([...this.#modules.values()].flatMap((each) => [...this.#before(each), each]))
    return [...inOrder].map((each) => {
      return { name: each.name, path: each.path, text: this.#text(each), needs: [...this.#before(each)].map(({ name }) => name) }
    })
  }

  /**
   * The body of a function, as the texts of its sections: the first with all that the body uses
   * before it. `functionOf`: of take.mjs.
   */
  madeBy(functionOf, decidePath, { path, name }) {
    const source = this.program.source(path)
    const binding = this.program.binding(source, name, { start: 0 })
    const writer = new Writer(this, source)
    const lines = writer.function(functionOf(this.program, this.program.source(decidePath), binding), [], () => '')
    const [first, ...others] = sectionsOf(lines, writer.sections)
    this.#add(source, writer.uses, first)
    const module = this.#module(source)
    const modules = [...this.#before(module), module]
    this.#refuseTwins()
    const text = modules.map((each) => this.#text(each)).join('\n')
    const rest = others.map((section) => `${section.join('\n')}\n`)
    return [`${preludeFor([text, ...rest].join(''))}\n${text}`, ...rest]
  }

  takeAll(decidePath) {
    const source = this.program.source(decidePath)
    const writer = new Writer(this, source)
    const lines = writer.function(takeAllFunction(this.program, source), [], (parameters) => `local function takeAll(${parameters})`)
    return `${lines.join('\n')}\n`
  }

  #entry(source, roots) {
    const functions = []
    for (const name of roots) {
      const binding = this.program.binding(source, name, { start: 0 })
      if (binding?.kind === 'algorithm') this.#writeAlgorithm(binding)
      else if (binding?.kind === 'function') functions.push(binding)
      else fail(source, { start: 0 }, `'${name}' is neither a function nor an algorithm`)
    }
    for (const each of functions) this.#writeFunction(each)
  }

  /** The module that a source becomes. */
  #module(source) {
    const { path } = source
    const roots = this.#entries.get(path)?.roots
    const known = this.#modules.get(path) ?? {
      name: camelCase(basename(path, '.ts')),
      path,
      source,
      roots,
      arrays: new Set(),
      texts: [],
      uses: new Set(),
    }
    this.#modules.set(path, known)
    return known
  }

  #writeFunction(binding) {
    const key = this.keyOf(binding)
    if (this.#written.get(key) === 'begun') fail(binding.source, binding.node, `'${binding.name}' calls itself, which is not supported`)
    if (this.#written.has(key)) return
    this.#written.set(key, 'begun')
    const writer = new Writer(this, binding.source)
    const name = this.nameOf(binding)
    const head = this.#isRoot(binding)
      ? (parameters) => `function ${name}(${parameters})`
      : (parameters) => `local function ${name}(${parameters})`
    const lines = writer.function(binding.node, binding.types ?? [], head)
    this.#add(binding.source, writer.uses, [...comment(binding.source, binding.statement), ...lines])
    this.#written.set(key, 'done')
  }

  #writeAlgorithm(binding) {
    const { source, node, algorithm, type } = binding
    const uses = new Set()
    const members = node.init.properties.filter((each) => each.type !== 'Property' || !NOT_IN_LUA.has(keyOf(each)))
    const lines = members.flatMap((each) => this.#memberLines(source, each, type, uses).map((line) => `  ${line}`))
    this.#add(source, uses, [...comment(source, binding.statement), `algorithms.${algorithm} = {`, ...lines, '}'])
  }

  #memberLines(source, property, type, uses) {
    if (property.type !== 'Property' || property.computed || property.kind !== 'init')
      fail(source, property, 'an algorithm is made of names and values')
    const writer = new Writer(this, source)
    const key = keyText(keyOf(property))
    const { value } = property
    const isFunction = value.type === 'FunctionExpression' || value.type === 'ArrowFunctionExpression'
    const lines = isFunction
      ? writer.function(
          value,
          this.program.types.member(type, keyOf(property)).type.parameters ?? [],
          (parameters) => `${key} = function(${parameters})`,
        )
      : [`${key} = ${expression(writer, value).text}`]
    for (const each of writer.uses) uses.add(each)
    return [...comment(source, property), ...lines.slice(0, -1), `${lines.at(-1)},`]
  }

  /** Adds the text of a function to its module, behind the texts of all that it uses. */
  #add(source, uses, lines) {
    for (const each of uses) {
      if (each.kind === 'function') this.#writeFunction(each)
      else this.#module(each.source).arrays.add(each)
    }
    const module = this.#module(source)
    for (const each of uses) if (each.source !== source) module.uses.add(each.source.path)
    module.texts.push(lines)
  }

  keyOf(binding) {
    return `${binding.source.path}#${binding.name}`
  }

  /** The name in Lua of a function or an array at the top of a module. */
  nameOf(binding) {
    return this.#entries.has(binding.source.path) ? localName(binding.source, binding.name) : binding.name
  }

  #isRoot(binding) {
    return this.#entries.get(binding.source.path)?.roots.includes(binding.name) ?? false
  }

  /** Whether a source cannot see this, because it is local to the block of another module. */
  isHidden(binding, from) {
    return this.#entries.has(binding.source.path) && binding.source !== from && !this.#isRoot(binding)
  }

  /** Modules that are not entries share one scope in Lua. */
  #refuseTwins() {
    const owners = new Map()
    for (const key of this.#written.keys()) {
      const [path, name] = key.split('#')
      if (this.#entries.has(path)) continue
      const owner = owners.get(name) ?? (isTaken(name) ? 'prelude.lua or the language' : path)
      if (owner !== path) throw new Error(`${path}: '${name}' is a name of ${owner} too, and both stand in one scope in Lua: rename one`)
      owners.set(name, path)
    }
  }

  #text(module) {
    const heading = `-- From ${module.path}.`
    const arrays = [...module.arrays].flatMap((each) => this.#arrayLines(each))
    const blocks = [...(arrays.length > 0 ? [arrays] : []), ...module.texts]
    if (module.roots === undefined) return `${[[heading], ...blocks].map((lines) => lines.join('\n')).join('\n\n')}\n`
    const declared = module.roots.filter((name) => this.program.binding(module.source, name, { start: 0 }).kind === 'function')
    const inside = blocks.map((lines) => lines.map((line) => (line === '' ? '' : `  ${line}`)).join('\n')).join('\n\n')
    return [heading, ...(declared.length > 0 ? [`local ${declared.join(', ')}`] : []), 'do', inside, 'end', ''].join('\n')
  }

  #arrayLines(binding) {
    const name = this.nameOf(binding)
    const zeros = Array.from({ length: binding.size }, (_, k) => (this.passed.has(this.keyOf(binding)) && k === 0 ? '[0] = 0' : '0'))
    const isTable = this.passed.has(this.keyOf(binding))
    const places = zeros.map((_, k) => `${name}${k}`)
    const line = isTable ? `local ${name} = { ${zeros.join(', ')} }` : `local ${places.join(', ')} = ${zeros.join(', ')}`
    return [...comment(binding.source, binding.statement), line]
  }

  /** All modules that have to stand before this one, in order. */
  #before(module, found = new Set()) {
    for (const path of module.uses) {
      const used = this.#modules.get(path)
      this.#before(used, found).add(used)
    }
    return found
  }
}

/** The lines of a body, without those of its head and its end, cut where sections begin. */
function sectionsOf(lines, begins) {
  const ends = [...begins, lines.length - 1]
  return [1, ...begins].map((begin, k) => lines.slice(begin, ends[k]).map((line) => line.slice(2)))
}

function comment(source, node) {
  return docAbove(source, node).map((line) => (line === '' ? '--' : `-- ${line}`))
}
