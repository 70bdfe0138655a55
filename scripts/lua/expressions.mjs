// Expressions. Each becomes { text, level, type, constant? }.
import { constantOf } from './constants.mjs'
import { callInPlace, mathInPlace } from './in-place.mjs'
import { AND, ATOM, atom, COMPARISON, OR, PRODUCT, SUM, UNARY, within } from './levels.mjs'
import { isKeyword, MATH } from './names.mjs'
import { BOOLEAN, either, isAlwaysTrue, NOTHING, NUMBER, STRING, UNKNOWN } from './types.mjs'

const ARITHMETIC = { '+': SUM, '-': SUM, '*': PRODUCT, '/': PRODUCT, '%': PRODUCT }
const ORDER = new Set(['<', '<=', '>', '>='])
const EQUALITY = { '===': '==', '!==': '~=' }

/** A table that is wider has a line for each member. */
const WIDE = 80

/** @param f the function that is being written: see writer.mjs */
export function expression(f, node) {
  const constant = constantOf(node, (name) => (f.local(name) === undefined ? f.program.constant(f.source, name, node) : undefined))
  if (constant !== undefined) return constantText(f, node, constant)
  const write = EXPRESSIONS[node.type]
  return write === undefined ? f.fail(node, `${node.type} does not become Lua`) : write(f, node)
}

/** An expression where Lua tests for truth: 0 and '' are true there, so it has to be a boolean. */
export function condition(f, node) {
  const read = expression(f, node)
  if (read.type.kind !== 'boolean' || read.type.isOptional) {
    f.fail(node, `a condition has to be a boolean, and this is ${named(read.type)}: compare it with something`)
  }
  return read
}

const named = (type) => (type.kind === 'unknown' ? 'of a type that is not known' : `${type.isOptional ? 'perhaps ' : ''}${type.kind}`)

function constantText(f, node, value) {
  if (typeof value === 'string') return { ...atom(quoted(value), STRING), constant: value }
  if (Number.isNaN(value) || Object.is(value, -0)) f.fail(node, `${Object.is(value, -0) ? '-0' : value} cannot be written in Lua`)
  const text = String(Math.abs(value)).replace('Infinity', 'huge').replace('+', '')
  return { text: value < 0 ? `-${text}` : text, level: value < 0 ? UNARY : ATOM, type: NUMBER, constant: value }
}

function quoted(text) {
  const escaped = text.replace(/['\\]/g, '\\$&').replaceAll('\n', '\\n')
  return `'${escaped}'`
}

const EXPRESSIONS = {
  Literal(f, node) {
    if (typeof node.value === 'boolean') return atom(String(node.value), BOOLEAN)
    return f.fail(node, `${node.raw} does not become Lua`)
  },

  Identifier(f, node) {
    const local = f.local(node.name)
    if (local !== undefined) return atom(local.name, local.type)
    if (node.name === 'undefined') return atom('nil', NOTHING)
    return f.reference(node)
  },

  TSAsExpression: (f, node) => casted(f, node),
  TSSatisfiesExpression: (f, node) => expression(f, node.expression),

  TSNonNullExpression(f, node) {
    const read = expression(f, node.expression)
    return { ...read, type: { ...read.type, isOptional: false } }
  },

  UnaryExpression(f, node) {
    if (node.operator === '!') return negated(condition(f, node.argument))
    if (node.operator !== '-') f.fail(node, `the operator '${node.operator}' does not become Lua`)
    const text = within(number(f, node.argument), UNARY)
    return { text: text.startsWith('-') ? `-(${text})` : `-${text}`, level: UNARY, type: NUMBER }
  },

  BinaryExpression(f, node) {
    const { operator, left, right } = node
    if (operator in ARITHMETIC) {
      const level = ARITHMETIC[operator]
      return { text: `${within(number(f, left), level)} ${operator} ${within(number(f, right), level + 1)}`, level, type: NUMBER }
    }
    if (ORDER.has(operator)) return compared(number(f, left), operator, number(f, right))
    if (operator in EQUALITY) return compared(expression(f, left), EQUALITY[operator], expression(f, right))
    return f.fail(node, `the operator '${operator}' does not become Lua`)
  },

  LogicalExpression(f, node) {
    if (node.operator === '??') return orElse(f, node)
    const level = node.operator === '&&' ? AND : OR
    const word = node.operator === '&&' ? 'and' : 'or'
    return { text: `${within(condition(f, node.left), level)} ${word} ${within(condition(f, node.right), level)}`, level, type: BOOLEAN }
  },

  ConditionalExpression(f, node) {
    const test = condition(f, node.test)
    const middle = expression(f, node.consequent)
    const last = expression(f, node.alternate)
    const first = `${within(test, AND)} and ${within(middle, COMPARISON)}`
    if (isAlwaysTrue(middle.type)) return { text: `${first} or ${within(last, OR)}`, level: OR, type: either(middle.type, last.type) }
    if (middle.type.kind !== 'boolean' || middle.type.isOptional || last.type.kind !== 'boolean' || test.text.includes('(')) {
      f.fail(node.consequent, `the middle of '? :' is ${named(middle.type)}: where it may be false or undefined, write an if`)
    }
    return { text: `${first} or ${within(negated(test), AND)} and ${within(last, COMPARISON)}`, level: OR, type: BOOLEAN }
  },

  MemberExpression(f, node) {
    const read = node.computed ? element(f, node) : member(f, node)
    return node.luaType === undefined ? read : { ...read, type: node.luaType }
  },
  CallExpression: (f, node) => call(f, node),

  ObjectExpression(f, node) {
    const parts = node.properties.map((each) => {
      if (each.type !== 'Property' || each.computed || each.method || each.kind !== 'init')
        f.fail(each, 'an object is made of names and values')
      return `${keyText(keyOf(each))} = ${expression(f, each.value).text}`
    })
    const line = `{ ${parts.join(', ')} }`
    return atom(line.length > WIDE ? `{\n${parts.map((each) => `  ${each.replaceAll('\n', '\n  ')},`).join('\n')}\n}` : line, {
      kind: 'object',
    })
  },

  /** From 0 on, like in TypeScript. */
  ArrayExpression(f, node) {
    const items = node.elements.map((each) =>
      each === null || each.type === 'SpreadElement' ? f.fail(node, 'an array is a list of values') : expression(f, each),
    )
    const texts = items.map(({ text }, k) => (k === 0 ? `[0] = ${text}` : text))
    return atom(`{ ${[...texts, `length = ${items.length}`].join(', ')} }`, { kind: 'array', of: items[0]?.type ?? UNKNOWN })
  },
}

export function keyOf(property) {
  return property.key.name ?? String(property.key.value)
}

export function keyText(name) {
  return isKeyword(name) || !/^[A-Za-z_]\w*$/.test(name) ? `[${quoted(name)}]` : name
}

function negated(read) {
  return { text: `not ${within(read, UNARY)}`, level: UNARY, type: BOOLEAN }
}

/** Casts say what the type checker cannot know; nothing happens. */
function casted(f, node) {
  const read = expression(f, node.expression)
  const type = f.program.types.read(node.source ?? f.source, node.typeAnnotation)
  return { ...read, type: type.kind === 'unknown' ? read.type : type }
}

/** An operand of arithmetic: `+` on texts would be something else in Lua. */
function number(f, node) {
  const read = expression(f, node)
  if (read.type.kind !== 'number') f.fail(node, `arithmetic needs a number, and this is ${named(read.type)}`)
  return read
}

function compared(left, operator, right) {
  return { text: `${within(left, SUM)} ${operator} ${within(right, SUM)}`, level: COMPARISON, type: BOOLEAN }
}

/** `x ?? y`: nil is passed over by `or`, and so would false be. */
function orElse(f, node) {
  const left = expression(f, node.left)
  if (left.type.kind === 'boolean' || left.type.kind === 'unknown')
    f.fail(node.left, `what stands before '??' is ${named(left.type)}: it must never be false`)
  const right = expression(f, node.right)
  return { text: `${within(left, OR)} or ${within(right, OR)}`, level: OR, type: right.type }
}

function member(f, node) {
  if (node.optional) f.fail(node, "'?.' does not become Lua")
  const object = prefix(f, node.object)
  const { name } = node.property
  const text = isKeyword(name) ? `${object.text}[${quoted(name)}]` : `${object.text}.${name}`
  return atom(text, f.program.types.member(object.type, name).type)
}

function element(f, node) {
  if (node.optional) f.fail(node, "'?.' does not become Lua")
  const index = indexOf(f, node.property)
  const array = f.arrayNamed(node.object)
  if (array !== undefined) return atom(f.arrayElement(array, index, node), NUMBER)
  const object = prefix(f, node.object)
  return atom(`${object.text}[${index.text}]`, object.type.of ?? UNKNOWN)
}

/** `i + 0` is `i`: constants name the words of a state. */
function indexOf(f, node) {
  const index = number(f, node)
  return node.type === 'BinaryExpression' && node.operator === '+' && expression(f, node.right).constant === 0
    ? number(f, node.left)
    : index
}

/** What may stand before `.`, `[` and `(`. */
function prefix(f, node) {
  const read = expression(f, node)
  if (read.level < ATOM || /^['{\d]/.test(read.text)) f.fail(node, 'give this a name first')
  return read
}

function call(f, node) {
  if (node.optional) f.fail(node, "'?.' does not become Lua")
  const special = node.callee.type === 'MemberExpression' && !node.callee.computed ? specialCall(f, node) : undefined
  if (special !== undefined) return special
  const computed = callInPlace(f, node)
  if (computed !== undefined) return computed
  const callee = prefix(f, node.callee)
  return atom(`${callee.text}(${argumentTexts(f, node).join(', ')})`, callee.type.returns ?? UNKNOWN)
}

/** `Math.max(a, b)`, `Object.freeze(x)`, `figures.join(' ')` and `s.slice(from, to)`. */
function specialCall(f, node) {
  const { object, property } = node.callee
  if (object.name === 'Math' && f.local('Math') === undefined) {
    if (!MATH.has(property.name)) f.fail(node, `Math.${property.name} does not become Lua`)
    const operands = node.arguments.map((each) => number(f, each))
    return mathInPlace(node, operands) ?? atom(`${property.name}(${operands.map(({ text }) => text).join(', ')})`, NUMBER)
  }
  if (object.name === 'Object' && property.name === 'freeze') return expression(f, node.arguments[0])
  const array = prefix(f, object)
  if (array.type.kind !== 'array') return undefined
  const method = METHODS[property.name]
  if (method?.takes !== node.arguments.length) f.fail(node, `'${property.name}' of an array does not become Lua with these arguments`)
  return atom(`${property.name}(${[array.text, ...argumentTexts(f, node)].join(', ')})`, method.returns ?? array.type)
}

/** Methods of arrays that the prelude has as functions. */
const METHODS = { join: { takes: 1, returns: STRING }, slice: { takes: 2 } }

function argumentTexts(f, node) {
  return node.arguments.map((each) =>
    each.type === 'SpreadElement' ? f.fail(each, "'...' does not become Lua") : expression(f, each).text,
  )
}
