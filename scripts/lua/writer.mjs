// Writes one function: keeps its lines, the names it declares, and the functions and arrays at the
// top of modules that it uses.
import { constantOf } from './constants.mjs'
import { atom } from './levels.mjs'
import { localName } from './names.mjs'
import { fail } from './source.mjs'
import { block } from './statements.mjs'

export class Writer {
  /** What this function uses from the top of modules. */
  uses = new Set()
  /** The lines at which sections begin. */
  sections = []
  #generation
  #lines = []
  #scopes = []

  constructor(generation, source) {
    this.#generation = generation
    this.program = generation.program
    this.source = source
  }

  /**
   * The lines of a function. `head` makes the first one out of the parameters; `types` are theirs,
   * where the source does not say.
   */
  function(node, types, head) {
    if (node.async || node.generator) this.fail(node, 'async functions and generators do not become Lua')
    this.nested(() => {
      const parameters = node.params.map((each, k) => this.#parameter(each, types[k]))
      this.#lines.push(head(parameters.join(', ')))
      const body =
        node.body.type === 'BlockStatement' ? node.body.body : [{ type: 'ReturnStatement', argument: node.body, start: node.body.start }]
      block(this, body)
      this.#lines.push('end')
    })
    return this.#lines
  }

  #parameter(node, type) {
    if (node.type !== 'Identifier') this.fail(node, 'a parameter is a name')
    const read = node.luaType ?? this.program.types.read(this.source, node.typeAnnotation)
    return this.declare(node.name, read.kind === 'unknown' && type !== undefined ? type : read)
  }

  fail(node, message) {
    return fail(this.source, node, message)
  }

  line(text) {
    for (const each of text.split('\n')) this.#lines.push('  '.repeat(this.#scopes.length - 1) + each)
  }

  beginSection() {
    this.sections.push(this.#lines.length)
  }

  nested(write) {
    this.#scopes.push(new Map())
    write()
    this.#scopes.pop()
  }

  /** Makes a name of this function known, and gives its name in Lua. */
  declare(name, type) {
    const local = { name: localName(this.source, name), type }
    this.#scopes.at(-1).set(name, local)
    return local.name
  }

  /** What a name declared in this function stands for: `{ name, type }`. */
  local(name) {
    return this.#scopes.findLast((each) => each.has(name))?.get(name)
  }

  /** What a name from the top of a module becomes. */
  reference(node) {
    const binding = this.program.binding(node.source ?? this.source, node.name, node)
    switch (binding?.kind) {
      case 'function':
        this.#use(binding, node)
        return atom(this.#generation.nameOf(binding), binding.type)
      case 'prelude':
        return atom(binding.name, binding.type)
      case 'algorithm':
        return atom(`algorithms.${binding.algorithm}`, binding.type)
      case 'array':
        this.#use(binding, node)
        this.#generation.passed.add(this.#generation.keyOf(binding))
        return atom(this.#generation.nameOf(binding), { kind: 'array', of: { kind: 'number' } })
      case undefined:
        return this.fail(node, `'${node.name}' is not known in Lua`)
      default:
        return this.fail(node, `'${node.name}' is neither a function nor a number nor a Float64Array: it does not become Lua`)
    }
  }

  /** What a node names at the top of a module. */
  bindingOf(node) {
    if (node.type !== 'Identifier' || this.local(node.name) !== undefined) return undefined
    return this.program.binding(node.source ?? this.source, node.name, node)
  }

  /** The array at the top of a module that a node names. */
  arrayNamed(node) {
    const binding = this.bindingOf(node)
    return binding?.kind === 'array' ? binding : undefined
  }

  /**
   * An element of such an array: a variable of its own, as long as the array is only used with
   * constant indexes.
   */
  arrayElement(binding, index, node) {
    const key = this.#generation.keyOf(binding)
    this.#use(binding, node)
    if (index.constant === undefined) this.#generation.passed.add(key)
    else if (index.constant >= binding.size) this.fail(node, `'${binding.name}' has ${binding.size} elements`)
    return this.#generation.passed.has(key)
      ? `${this.#generation.nameOf(binding)}[${index.text}]`
      : `${this.#generation.nameOf(binding)}${index.text}`
  }

  /**
   * Another writer for the body of a function that is computed in place here: its parameters stand
   * for these locals.
   */
  inside(source, locals) {
    const inner = new Writer(this.#generation, source)
    inner.#scopes.push(locals)
    return inner
  }

  /**
   * Takes over what such a body uses. Tells whether that was possible: not if this function does
   * not see what the body means.
   */
  adopt(inner) {
    const names = new Set(this.#scopes.flatMap((scope) => [...scope.values()].map(({ name }) => name)))
    const isSeen = (each) => !names.has(this.#generation.nameOf(each)) && !this.#generation.isHidden(each, this.source)
    if (![...inner.uses].every(isSeen)) return false
    for (const each of inner.uses) this.uses.add(each)
    return true
  }

  #use(binding, node) {
    if (this.#generation.isHidden(binding, this.source))
      this.fail(node, `'${binding.name}' stands in a block of its own in Lua: move it to a module of its own`)
    this.uses.add(binding)
  }

  /**
   * Whether an expression keeps its value while a loop runs: what is never assigned in it, and
   * readonly members of that.
   */
  isStill(node, loop) {
    if (this.#constant(node) !== undefined) return true
    const areStill = (...nodes) => nodes.every((each) => this.isStill(each, loop))
    switch (node.type) {
      case 'Identifier':
        return this.local(node.name) !== undefined && !this.assignedIn(loop).has(node.name)
      case 'TSAsExpression':
        return areStill(node.expression)
      case 'BinaryExpression':
        return areStill(node.left, node.right)
      case 'CallExpression':
        return node.callee.object?.name === 'Math' && areStill(...node.arguments)
      case 'MemberExpression':
        return !node.computed && areStill(node.object) && this.#isReadonly(node)
      default:
        return false
    }
  }

  #constant(node) {
    return constantOf(node, (name) => (this.local(name) === undefined ? this.program.constant(this.source, name, node) : undefined))
  }

  #isReadonly({ object, property }) {
    const { type } = object.type === 'Identifier' ? (this.local(object.name) ?? {}) : {}
    return type !== undefined && this.program.types.member(type, property.name).isReadonly
  }

  /** The names that are assigned somewhere in a node. */
  assignedIn(node, names = new Set()) {
    if (node.type === 'AssignmentExpression' && node.left.name !== undefined) names.add(node.left.name)
    if (node.type === 'UpdateExpression' && node.argument.name !== undefined) names.add(node.argument.name)
    for (const child of Object.values(node).flat()) {
      if (typeof child?.type === 'string') this.assignedIn(child, names)
    }
    return names
  }
}
