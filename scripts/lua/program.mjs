// All modules of one generation, and what the names in them stand for.
import { basename } from 'node:path'
import { constantOf } from './constants.mjs'
import { camelCase, PRELUDE_FUNCTIONS } from './names.mjs'
import { fail, readSource } from './source.mjs'
import { Types } from './types.mjs'

export class Program {
  types = new Types(this)
  #root
  #sources = new Map()
  #bindings = new Map()

  constructor(root) {
    this.#root = root
  }

  source(path) {
    const known = this.#sources.get(path) ?? readSource(this.#root, path)
    this.#sources.set(path, known)
    return known
  }

  /**
   * What a name at the top of a module stands for; `at` is the node to blame. Undefined if the
   * module does not know it.
   */
  binding(source, name, at) {
    const imported = source.imports.get(name)
    if (imported !== undefined) {
      if (imported.path === undefined) fail(source, at, `'${name}' comes from a package, which Lua does not have`)
      return this.binding(this.source(imported.path), imported.name, at)
    }
    const key = `${source.path}#${name}`
    if (!this.#bindings.has(key) && source.values.has(name)) this.#bindings.set(key, this.#read(source, name))
    return this.#bindings.get(key)
  }

  /** Whether something at the top of a module has this name. */
  isNamed(name) {
    return [...this.#sources.values()].some(({ values }) => values.has(name))
  }

  /**
   * Makes a function known that is a member of an algorithm, as if it stood at the top of its
   * module.
   */
  define({ source, node, types, returns, name }) {
    const given = camelCase(`${name}-of-${basename(source.path, '.ts')}`)
    const type = { kind: 'function', parameters: types, returns }
    const binding = { source, name: given, node, statement: node, kind: 'function', type, types }
    this.#bindings.set(`${source.path}#${given}`, binding)
    return binding
  }

  /** The value of a constant at the top of a module. */
  constant(source, name, at) {
    const binding = source.values.has(name) || source.imports.has(name) ? this.binding(source, name, at) : undefined
    return binding?.kind === 'constant' ? binding.value : undefined
  }

  #read(source, name) {
    const { node, statement, isConst } = source.values.get(name)
    const common = { source, name, node, statement }
    if (node.type === 'FunctionDeclaration') {
      const type = this.types.ofFunction(source, node)
      return { ...common, kind: PRELUDE_FUNCTIONS.has(name) ? 'prelude' : 'function', type }
    }
    if (isConst && node.init) {
      const value = constantOf(node.init, (each) => this.constant(source, each, node.init))
      if (value !== undefined) return { ...common, kind: 'constant', value }
      const size = this.#arraySize(source, node.init)
      if (size !== undefined) return { ...common, kind: 'array', size }
      const type = typeMember(node.init)
      if (type !== undefined)
        return { ...common, kind: 'algorithm', algorithm: type, type: this.types.read(source, node.id.typeAnnotation) }
    }
    return { ...common, kind: 'other' }
  }

  /** n of `new Float64Array(n)`. */
  #arraySize(source, init) {
    if (init.type !== 'NewExpression' || init.callee.name !== 'Float64Array' || init.arguments.length !== 1) return undefined
    return constantOf(init.arguments[0], (each) => this.constant(source, each, init))
  }
}

/** The `type` of an object that is an algorithm. */
function typeMember(init) {
  if (init.type !== 'ObjectExpression') return undefined
  const { value } = init.properties.find((each) => each.key?.name === 'type')?.value ?? {}
  return typeof value === 'string' ? value : undefined
}
