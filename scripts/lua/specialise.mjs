// One function with all that it calls computed inside of it, as far as it is known beforehand which
// functions those are.
//
// It works on the syntax tree: what is known (numbers, texts, which algorithm a rule has) is put
// in, branches that cannot be taken are left out, and calls of known functions are replaced by
// their bodies, with names of their own for what they declare. The result is one function that does
// the same steps in the same order.
import { constantOf } from './constants.mjs'
import { isTaken } from './names.mjs'
import { fail } from './source.mjs'
import { BOOLEAN, NUMBER } from './types.mjs'

/**
 * A value that is known while generating: an object whose fields are known one by one, an
 * algorithm, or a function.
 */
const isStatic = (node) => node.type === 'Static'
const literal = (value) => ({ type: 'Literal', value, raw: String(value), start: 0, end: 0 })
const NOTHING = { type: 'Identifier', name: 'undefined', start: 0, end: 0 }
const isNothing = (node) => node.type === 'Identifier' && node.name === 'undefined'
const isLiteral = (node) => node.type === 'Literal'
const statement = (expression) => ({ type: 'ExpressionStatement', expression, start: 0, end: 0 })
const assignment = (left, right, operator = '=') => statement({ type: 'AssignmentExpression', operator, left, right, start: 0, end: 0 })

/**
 * A variable of the function that is made. `isFixed`: never assigned after it was declared, so that
 * its name may stand for it.
 */
export const variable = (name, luaType, isFixed = true) => ({ type: 'Identifier', name, luaType, isFixed, start: 0, end: 0 })
/**
 * An object that is not there when the function runs: `fields` says what stands for each of its
 * fields; an undefined one is not kept.
 */
export const fieldsOf = (fields) => ({ type: 'Static', fields })
export const algorithmNode = (binding) => ({ type: 'Static', algorithm: binding })
export { literal }

/** Nothing, as a value. */
export const nothing = NOTHING

/** An object of what is known, or stays what it is, need not be made. */
function isKnownObject({ type, properties }) {
  return type === 'ObjectExpression' && properties.every(({ value }) => isStatic(value) || isLiteral(value) || value.isFixed)
}

function fieldsIn({ properties }) {
  return fieldsOf(Object.fromEntries(properties.map(({ key, value }) => [key.name, value])))
}

/** Something that is only known while generating would be needed when the function runs. */
export class Escape extends Error {}

export class Specialiser {
  #program
  #names = new Set()
  /** The statements of the block that is being made. */
  #lines = []
  /** The functions that are being put in, to see when one calls itself. */
  #open = []

  constructor(program) {
    this.#program = program
  }

  /**
   * The body of a function with these values for its parameters: its statements, and what it
   * returns, or undefined.
   */
  body(source, node, values) {
    const lines = this.#block(() => {
      this.result = this.#inline({ source, node, returns: undefined }, values)
    })
    return { lines: tidy(lines), result: this.result }
  }

  #block(make) {
    const outer = this.#lines
    const lines = []
    this.#lines = lines
    make()
    this.#lines = outer
    return lines
  }

  fresh(name) {
    let free = name
    for (let k = 2; this.#names.has(free) || isTaken(free) || this.#program.isNamed(free); k++) free = `${name}${k}`
    this.#names.add(free)
    return free
  }

  reserve(name) {
    this.#names.add(name)
  }

  #declare(scope, name, type, init, isFixed) {
    const local = variable(this.fresh(name), type, isFixed)
    scope.names.set(name, local)
    this.#lines.push({ type: 'VariableDeclaration', kind: 'let', declarations: [{ id: local, init }], start: 0, end: 0 })
    return local
  }

  // Calls

  /** A call of a known function. Answers what it returns. */
  #inline({ source, node, types = [], returns }, values) {
    if (this.#open.includes(node)) fail(source, node, 'this calls itself, which is not supported')
    this.#open.push(node)
    const scope = { source, names: new Map() }
    node.params.forEach((each, k) => {
      const type = this.#typeOf(source, each.typeAnnotation, types[k])
      this.#bind(scope, each.name, values[k] ?? NOTHING, type, !assigns(node.body, each.name))
    })
    const result = node.body.type === 'BlockStatement' ? this.#bodyOf(scope, node.body.body, returns) : this.#expression(scope, node.body)
    this.#open.pop()
    return result
  }

  /** What a name stands for from now on: the value itself, where that stays what it is. */
  #bind(scope, name, value, type, isFixed) {
    if (isFixed && (isStatic(value) || isLiteral(value) || isNothing(value) || value.isFixed)) scope.names.set(name, value)
    else if (isStatic(value)) fail(scope.source, { start: 0 }, `'${name}' is assigned, but is only known while generating`)
    else if (isFixed && isKnownObject(value)) scope.names.set(name, fieldsIn(value))
    else this.#declare(scope, name, type.kind === 'unknown' ? value.luaType : type, value, isFixed)
  }

  #bodyOf(scope, nodes, returns) {
    const last = nodes.at(-1)
    const isStraight =
      nodes.every((each) => each === last || !returnsIn(each)) && (last?.type === 'ReturnStatement' || !last || !returnsIn(last))
    if (isStraight) {
      for (const each of nodes) if (each.type !== 'ReturnStatement') this.#statement(scope, each)
      return last?.type === 'ReturnStatement' && last.argument ? this.#expression(scope, last.argument) : NOTHING
    }
    const given = []
    const result = variable(this.fresh('result'), returns, false)
    const lines = this.#block(() => this.#tail(scope, nodes, (value) => given.push({ value, lines: this.#lines })))
    // Where only one way is left, or all give the same, nothing has to be chosen.
    if (given.length === 1 && given[0].lines === lines) {
      this.#lines.push(...lines)
      return given[0].value
    }
    const [first] = given
    const isSame = given.every(
      ({ value }) => (isLiteral(value) && isLiteral(first.value) && value.value === first.value.value) || isNothing(value),
    )
    if (!isSame) {
      this.#lines.push({ type: 'VariableDeclaration', kind: 'let', declarations: [{ id: result, init: null }], start: 0, end: 0 })
      for (const { value, lines: place } of given) place.push(assignment(result, value))
    }
    this.#lines.push({ type: 'BlockStatement', body: lines, start: 0, end: 0 })
    if (isSame) return first.value
    return result
  }

  /**
   * Statements that end in returns: what comes behind an `if` with a return goes into its other
   * branch.
   */
  #tail(scope, nodes, give) {
    for (const [k, node] of nodes.entries()) {
      if (node.type === 'ReturnStatement') {
        give(node.argument ? this.#expression(scope, node.argument) : NOTHING)
        return
      }
      if (node.type === 'IfStatement' && returnsIn(node)) {
        const rest = nodes.slice(k + 1)
        const test = this.#expression(scope, node.test)
        const yes = [...bodyOf(node.consequent), ...rest]
        const no = [...(node.alternate ? bodyOf(node.alternate) : []), ...rest]
        if (isLiteral(test)) {
          this.#tail(scope, test.value ? yes : no, give)
          return
        }
        const inner = () => ({ source: scope.source, names: new Map(scope.names) })
        const consequent = this.#block(() => this.#tail(inner(), yes, give))
        const alternate = this.#block(() => this.#tail(inner(), no, give))
        this.#lines.push(ifStatement(test, consequent, alternate))
        return
      }
      this.#statement(scope, node)
    }
    give(NOTHING)
  }

  #typeOf(source, annotation, other) {
    const type = this.#program.types.read(source, annotation)
    return type.kind === 'unknown' && other !== undefined ? other : type
  }

  // Statements

  #statement(scope, node) {
    const make = STATEMENTS[node.type]
    if (make === undefined) fail(scope.source, node, `${node.type} cannot be put in place`)
    make(this, scope, node)
  }

  block(scope, nodes) {
    const inner = { source: scope.source, names: new Map(scope.names) }
    return this.#block(() => {
      for (const each of nodes) this.#statement(inner, each)
    })
  }

  /**
   * An expression that is computed again and again, so that nothing may have to be done before it.
   */
  #bare(scope, node) {
    let read
    if (
      this.#block(() => {
        read = this.#expression(scope, node)
      }).length > 0
    )
      fail(scope.source, node, 'this cannot be put in place in a loop')
    return read
  }

  declaration(scope, { id, init }, kind) {
    const value = init ? this.#expression(scope, init) : null
    const type = this.#typeOf(scope.source, id.typeAnnotation, init ? this.typeOf(value) : undefined)
    if (value !== null && kind === 'const') this.#bind(scope, id.name, value, type, true)
    else this.#declare(scope, id.name, type, value, false)
  }

  assign(scope, { operator, left, right }) {
    const target = this.#expression(scope, left)
    const value = this.#expression(scope, right)
    // A field that is not kept.
    if (target.type === 'Dropped') return
    if (isStatic(target) || isLiteral(target) || target.isFixed)
      fail(scope.source, left, 'this is only known while generating, and cannot be assigned')
    this.#lines.push(assignment(target, value, operator))
  }

  loop(scope, node) {
    const { init, test, update, body } = node
    const steps = this.#stepsOf(scope, node)
    if (steps !== undefined) {
      for (const value of steps) {
        const names = new Map(scope.names).set(init.declarations[0].id.name, literal(value))
        this.#lines.push({ type: 'BlockStatement', body: this.block({ source: scope.source, names }, bodyOf(body)), start: 0, end: 0 })
      }
      return
    }
    const inner = { source: scope.source, names: new Map(scope.names) }
    const lines = this.#block(() => {
      const before = this.#block(() => {
        if (init?.type === 'VariableDeclaration') for (const each of init.declarations) this.declaration(inner, each, 'let')
        else if (init) this.#statement(inner, statement(init))
      })
      const first = before.pop()
      this.#lines.push(...before, {
        type: 'ForStatement',
        init: first?.type === 'VariableDeclaration' ? first : (first?.expression ?? null),
        test: test && this.#bare(inner, test),
        update: update && this.#step(inner, update),
        body: { type: 'BlockStatement', body: this.block(inner, bodyOf(body)), start: 0, end: 0 },
        start: 0,
        end: 0,
      })
    })
    this.#lines.push(...(lines.length === 1 ? lines : [{ type: 'BlockStatement', body: lines, start: 0, end: 0 }]))
  }

  /**
   * The values that a counter takes, where those are known and few: then the loop is written out.
   */
  #stepsOf(scope, { init, test, update, body }) {
    const { id, init: start } = init?.type === 'VariableDeclaration' && init.declarations.length === 1 ? init.declarations[0] : {}
    const target = update?.argument ?? update?.left
    const isUp = update?.operator === '++' || (update?.operator === '+=' && update.right.value === 1)
    if (!isUp || !start || target.name !== id.name || !test || assigns(body, id.name) || breaksIn(body)) return undefined
    const steps = []
    const first = constantOf(start, (name) => this.#constantNamed(scope, name, start))
    for (let value = first; typeof value === 'number' && steps.length <= FEW; value += 1) {
      const names = new Map(scope.names).set(id.name, literal(value))
      const goesOn = this.#bare({ source: scope.source, names }, test)
      if (!isLiteral(goesOn)) return undefined
      if (!goesOn.value) return steps
      steps.push(value)
    }
    return undefined
  }

  #step(scope, node) {
    if (node.type === 'UpdateExpression') return { ...node, argument: this.#bare(scope, node.argument) }
    return { ...node, left: this.#bare(scope, node.left), right: this.#bare(scope, node.right) }
  }

  choice(scope, { test, consequent, alternate }) {
    const read = this.#expression(scope, test)
    if (isLiteral(read)) {
      const taken = read.value ? consequent : alternate
      if (taken) this.#lines.push(...this.block(scope, bodyOf(taken)))
      return
    }
    const [yes, no] = [this.block(scope, bodyOf(consequent)), alternate ? this.block(scope, bodyOf(alternate)) : []]
    this.#lines.push(ifStatement(read, yes, no))
  }

  call(scope, node) {
    const value = this.#expression(scope, node)
    if (value.type === 'CallExpression') this.#lines.push(statement(value))
  }

  // Expressions

  #expression(scope, node) {
    const constant = constantOf(node, (name) => this.#constantNamed(scope, name, node))
    if (constant !== undefined) return literal(constant)
    const make = EXPRESSIONS[node.type]
    if (make === undefined) fail(scope.source, node, `${node.type} cannot be put in place`)
    return make(this, scope, node)
  }

  expression(scope, node) {
    return this.#expression(scope, node)
  }

  #constantNamed(scope, name, node) {
    const local = scope.names.get(name)
    if (local !== undefined) return isLiteral(local) ? local.value : undefined
    return this.#program.constant(scope.source, name, node)
  }

  /**
   * What is computed in order: where something has to be done before a later one, the earlier ones
   * are computed before that.
   */
  inOrder(scope, nodes) {
    const read = []
    for (const each of nodes) {
      const before = this.#lines.length
      const value = this.#expression(scope, each)
      if (this.#lines.length > before) {
        const added = this.#lines.splice(before)
        read.forEach((earlier, k) => {
          if (isLiteral(earlier) || isStatic(earlier) || isNothing(earlier) || earlier.isFixed) return
          read[k] = this.#declare({ names: new Map() }, 'earlier', this.typeOf(earlier), earlier, true)
        })
        this.#lines.push(...added)
      }
      read.push(value)
    }
    return read
  }

  name(scope, node) {
    const local = scope.names.get(node.name)
    if (local !== undefined) return local
    if (node.name === 'undefined') return NOTHING
    const binding = this.#program.binding(scope.source, node.name, node)
    if (binding?.kind === 'algorithm') return algorithmNode(binding)
    if (binding?.kind === 'function')
      return { type: 'Static', called: { source: binding.source, node: binding.node, returns: binding.type.returns, binding } }
    return { ...node, source: scope.source }
  }

  member(scope, node) {
    const { object, property, computed } = node
    if (computed) {
      const [from, index] = this.inOrder(scope, [object, property])
      if (isStatic(from) && !isLiteral(index)) throw new Escape('an element is only known when the function runs')
      if (isStatic(from)) return from.elements?.[index.value] ?? fail(scope.source, node, 'this element is not known')
      return { ...node, object: from, property: index }
    }
    const from = this.#expression(scope, object)
    if (from.known?.has(property.name)) return from.known.get(property.name)
    if (!isStatic(from)) return { ...node, object: from }
    if (from.algorithm) return this.#memberOf(from.algorithm, property.name)
    if (from.elements && property.name === 'length') return literal(from.elements.length)
    if (!(property.name in (from.fields ?? {}))) fail(scope.source, node, `'${property.name}' is not known while generating`)
    return from.fields[property.name] ?? { type: 'Dropped' }
  }

  #memberOf({ source, node, type }, name) {
    const property = node.init.properties.find((each) => each.key?.name === name)
    if (property === undefined) return NOTHING
    const { value } = property
    if (value.type === 'FunctionExpression' || value.type === 'ArrowFunctionExpression') {
      const { parameters, returns } = this.#program.types.member(type, name).type
      return { type: 'Static', called: { source, node: value, types: parameters, returns, name } }
    }
    return this.#expression({ source, names: new Map() }, value)
  }

  called(scope, node) {
    const { callee } = node
    if (callee.name === 'clearWords' && this.#isPrelude(scope, callee)) {
      const [s, from, count] = this.inOrder(scope, node.arguments)
      if (isLiteral(from) && isLiteral(count) && count.value <= FEW) return this.#clear(s, from.value, count.value)
    }
    if (callee.object?.name === 'Math' || callee.object?.name === 'Object' || this.#isPrelude(scope, callee)) {
      return { ...node, callee: { ...callee, source: scope.source }, arguments: this.#whole(node, this.inOrder(scope, node.arguments)) }
    }
    const target = this.#expression(scope, callee)
    if (!isStatic(target)) return { ...node, callee: target, arguments: this.inOrder(scope, node.arguments) }
    const { called } = target
    if (called === undefined) fail(scope.source, node, 'this is no function')
    const values = this.inOrder(scope, node.arguments)
    if (mayInline(called.node)) return this.#inline(called, values)
    this.#whole(node, values)
    const { name } = called.binding ?? this.#program.define(called)
    const kept = { type: 'Identifier', name, source: called.source, start: node.start, end: node.end }
    return { ...node, callee: kept, arguments: values, luaType: called.returns }
  }

  /** Values that a function is called with, which have to be there when that runs. */
  #whole(node, values) {
    if (values.some(isStatic)) throw new Escape(`'${node.callee.name}' is called with what is only known while generating`)
    return values
  }

  /** A few words that are set to 0 one by one. */
  #clear(s, from, count) {
    for (let k = 0; k < count; k++) {
      const word = { type: 'MemberExpression', computed: true, object: s, property: literal(from + k), start: 0, end: 0 }
      this.#lines.push(assignment(isStatic(s) ? s.elements[from + k] : word, literal(0)))
    }
    return NOTHING
  }

  #isPrelude(scope, callee) {
    if (callee.type !== 'Identifier' || scope.names.has(callee.name)) return false
    return this.#program.binding(scope.source, callee.name, callee)?.kind === 'prelude'
  }

  /**
   * `a && b`, `a || b` and `a ? b : c`: what has to be done before a branch is done only where that
   * is taken.
   */
  either(test, makeYes, makeNo) {
    if (isLiteral(test)) return test.value ? makeYes() : makeNo()
    let yes
    let no
    const yesLines = this.#block(() => {
      yes = makeYes()
    })
    const noLines = this.#block(() => {
      no = makeNo()
    })
    if (yesLines.length === 0 && noLines.length === 0) return { isOpen: true, yes, no }
    const result = this.#declare({ names: new Map() }, 'chosen', this.typeOf(yes) ?? this.typeOf(no), null, false)
    yesLines.push(assignment(result, yes))
    noLines.push(assignment(result, no))
    this.#lines.push(ifStatement(test, yesLines, noLines))
    return result
  }

  typeOf(node) {
    if (node.luaType) return node.luaType
    if (isLiteral(node)) return { kind: typeof node.value }
    if (node.type === 'BinaryExpression' && ['===', '!==', '<', '<=', '>', '>='].includes(node.operator)) return BOOLEAN
    if (node.type === 'LogicalExpression' || (node.type === 'UnaryExpression' && node.operator === '!')) return BOOLEAN
    if (node.type === 'BinaryExpression' || node.type === 'UnaryExpression' || node.callee?.object?.name === 'Math') return NUMBER
    if (node.type === 'ConditionalExpression') return this.typeOf(node.consequent)
    if (node.type === 'TSAsExpression') return this.#program.types.read(node.source, node.typeAnnotation)
    return { kind: 'unknown', isOptional: true }
  }
}

const blockOf = (body) => ({ type: 'BlockStatement', body, start: 0, end: 0 })

function ifStatement(test, yes, no) {
  return { type: 'IfStatement', test, consequent: blockOf(yes), alternate: blockOf(no), start: 0, end: 0 }
}

/** Without branches and blocks that have nothing in them. */
function tidy(lines) {
  return lines.flatMap((line) => {
    if (line.type === 'BlockStatement') return tidyBlock(tidy(line.body))
    if (line.type === 'ForStatement') return [{ ...line, body: blockOf(tidy(line.body.body)) }]
    return line.type === 'IfStatement' ? tidyIf(line.test, tidy(line.consequent.body), tidy(line.alternate.body)) : [line]
  })
}

function tidyBlock(body) {
  return body.some(({ type }) => type === 'VariableDeclaration') ? [blockOf(body)] : body
}

function tidyIf(test, yes, no) {
  if (yes.length === 0 && no.length === 0 && isPure(test)) return []
  if (yes.length === 0) return tidyIf(negated(test), no, yes)
  const [first, ...others] = no
  const alternate = first?.type === 'IfStatement' && others.length === 0 ? first : blockOf(no)
  return [{ type: 'IfStatement', test, consequent: blockOf(yes), alternate: no.length > 0 ? alternate : null, start: 0, end: 0 }]
}

function negated(test) {
  if (test.type === 'UnaryExpression' && test.operator === '!') return test.argument
  return { type: 'UnaryExpression', operator: '!', argument: test, start: 0, end: 0 }
}

const bodyOf = (node) => (node.type === 'BlockStatement' ? node.body : [node])

const STATEMENTS = {
  EmptyStatement() {},
  BlockStatement: (s, scope, node) => s.choice(scope, { test: literal(true), consequent: node }),
  VariableDeclaration(s, scope, { declarations, kind }) {
    for (const each of declarations) s.declaration(scope, each, kind)
  },
  IfStatement: (s, scope, node) => s.choice(scope, node),
  ForStatement: (s, scope, node) => s.loop(scope, node),
  ExpressionStatement(s, scope, { expression: node }) {
    if (node.type === 'AssignmentExpression') s.assign(scope, node)
    else if (node.type === 'UpdateExpression') s.assign(scope, { operator: `${node.operator[0]}=`, left: node.argument, right: literal(1) })
    else s.call(scope, node)
  },
}

const EXPRESSIONS = {
  Literal: (_, __, node) => node,
  Static: (_, __, node) => node,
  Identifier: (s, scope, node) => (node.luaType ? node : s.name(scope, node)),
  TSNonNullExpression: (s, scope, node) => s.expression(scope, node.expression),
  TSSatisfiesExpression: (s, scope, node) => s.expression(scope, node.expression),
  TSAsExpression(s, scope, node) {
    const read = s.expression(scope, node.expression)
    return isStatic(read) || isLiteral(read) || isNothing(read) || read.luaType || read.type === 'Dropped'
      ? read
      : { ...node, expression: read, source: scope.source }
  },
  UnaryExpression(s, scope, node) {
    const read = s.expression(scope, node.argument)
    return node.operator === '!' && isLiteral(read) ? literal(!read.value) : { ...node, argument: read }
  },
  BinaryExpression(s, scope, node) {
    const [left, right] = s.inOrder(scope, [node.left, node.right])
    const made = { ...node, left, right }
    const constant = constantOf(made, () => undefined)
    if (constant !== undefined) return literal(constant)
    if (node.operator === '+' && right.value === 0) return left
    const isEqual = sameness(left, right)
    if (isEqual !== undefined && node.operator === '===') return literal(isEqual)
    if (isEqual !== undefined && node.operator === '!==') return literal(!isEqual)
    if (isLiteral(left) && isLiteral(right) && node.operator in ORDER) return literal(ORDER[node.operator](left.value, right.value))
    return made
  },
  LogicalExpression(s, scope, node) {
    const test = s.expression(scope, node.left)
    const right = () => s.expression(scope, node.right)
    if (node.operator === '??') fail(scope.source, node, "'??' cannot be put in place")
    const isAnd = node.operator === '&&'
    const read = isAnd ? s.either(test, right, () => literal(false)) : s.either(test, () => literal(true), right)
    if (!read.isOpen) return read
    const last = isAnd ? read.yes : read.no
    if (isLiteral(last) && last.value === isAnd) return test
    return isLiteral(last) && isPure(test) ? last : { ...node, left: test, right: last }
  },
  ConditionalExpression(s, scope, node) {
    const test = s.expression(scope, node.test)
    const branch = (each) => () => s.expression(scope, each)
    const read = s.either(test, branch(node.consequent), branch(node.alternate))
    return read.isOpen !== true ? read : { ...node, test, consequent: read.yes, alternate: read.no }
  },
  MemberExpression: (s, scope, node) => s.member(scope, node),
  CallExpression: (s, scope, node) => s.called(scope, node),
  ObjectExpression(s, scope, node) {
    return { ...node, properties: node.properties.map((each) => ({ ...each, value: s.expression(scope, each.value) })) }
  },
}

/** So many words are not worth a loop. */
const FEW = 4

const ORDER = { '<': (a, b) => a < b, '<=': (a, b) => a <= b, '>': (a, b) => a > b, '>=': (a, b) => a >= b }

/** Whether two values are the same, where that is known. Known fields of an object never change. */
function sameness(a, b) {
  if (isLiteral(a) && isLiteral(b)) return a.value === b.value
  if (isStatic(a) && isStatic(b)) return a === b
  if ((isStatic(a) || isNothing(a)) && (isStatic(b) || isNothing(b))) return isNothing(a) && isNothing(b)
  if (a.object?.known && a.object === b.object && !a.computed && !b.computed && a.property.name === b.property.name) return true
  return a.isFixed && b.isFixed && a.name === b.name ? true : undefined
}

const childrenOf = (node) =>
  Object.values(node)
    .flat()
    .filter((each) => typeof each?.type === 'string')

function isPure(node) {
  return node.type !== 'CallExpression' && childrenOf(node).every(isPure)
}

function returnsIn(node) {
  return node.type === 'ReturnStatement' || childrenOf(node).some(returnsIn)
}

function breaksIn(node) {
  return node.type === 'BreakStatement' || childrenOf(node).some(breaksIn)
}

/** Whether a name is assigned in a node. */
export function assigns(node, name) {
  if (node.type === 'AssignmentExpression' && node.left.name === name) return true
  if (node.type === 'UpdateExpression' && node.argument.name === name) return true
  return childrenOf(node).some((each) => assigns(each, name))
}

/**
 * A body can stand in place of a call unless it returns from within a loop. One that loops on a
 * condition takes its time anyway.
 */
function mayInline(node) {
  if (node.type === 'WhileStatement' || (node.type === 'ForStatement' && returnsIn(node))) return false
  return childrenOf(node).every(mayInline)
}
