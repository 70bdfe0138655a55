// Every mutant of a TypeScript source: one operator or constant changed. Types, strings and error
// texts are left alone.
import { parseAst } from 'rolldown/parseAst'
import { mutantsOf, otherNumbers } from './mutant.mjs'

/**
 * By operator: what it is flipped to. A comparison moves by its boundary, and turns into its
 * negation.
 */
const OTHER_OPERATORS = {
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '===': ['!=='],
  '!==': ['==='],
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '%': ['*'],
  '**': ['*'],
  '&&': ['||'],
  '||': ['&&'],
  '??': ['&&'],
  '+=': ['-='],
  '-=': ['+='],
  '*=': ['/='],
  '/=': ['*='],
  '++': ['--'],
  '--': ['++'],
}

const OTHER_METHODS = { min: 'max', max: 'min', floor: 'ceil', ceil: 'floor', round: 'floor', abs: 'sign' }

export function mutantsOfTypeScript(file, text) {
  const changes = []
  const visit = (node, scope) => {
    if (isSkipped(node)) return
    const inner = nameOf(node) ?? scope
    for (const [start, end, replacement] of CHANGES[node.type]?.(node, text) ?? []) changes.push({ start, end, replacement, scope: inner })
    for (const child of childrenOf(node)) visit(child, inner)
  }
  visit(parseAst(text, { lang: 'ts' }), '')
  return mutantsOf(file, text, changes)
}

/** Code that exists only for the compiler or only for people. */
function isSkipped({ type }) {
  const erased = type.startsWith('TS') && type !== 'TSAsExpression' && type !== 'TSNonNullExpression' && type !== 'TSSatisfiesExpression'
  return erased || type === 'ImportDeclaration' || type === 'ThrowStatement'
}

function childrenOf(node) {
  const values = Object.entries(node).flatMap(([name, value]) => (name === 'typeAnnotation' ? [] : value))
  return values.filter((value) => typeof value?.type === 'string')
}

/** The name of what a node defines, so that a mutant can say in which function it lies. */
function nameOf(node) {
  if (node.type === 'FunctionDeclaration') return node.id.name
  if (node.type === 'Property' && /Function/.test(node.value.type)) return node.key.name
  if (node.type === 'VariableDeclarator' && /ArrowFunction/.test(node.init?.type)) return node.id.name
  return undefined
}

/** By type of node: its changes, each [start, end, replacement]. */
const CHANGES = {
  BinaryExpression: otherOperators,
  AssignmentExpression: otherOperators,
  LogicalExpression({ operator, left, right, start, end }, text) {
    const [first, second] = [left, right].map((side) => inParentheses(side, text))
    return OTHER_OPERATORS[operator].map((other) => [start, end, `(${first} ${other} ${second})`])
  },
  UpdateExpression({ operator, argument, end }) {
    return [[argument.end, end, OTHER_OPERATORS[operator][0]]]
  },
  UnaryExpression({ operator, argument, start }) {
    return operator === '!' || operator === '-' ? [[start, argument.start, '']] : []
  },
  MemberExpression({ object, property }) {
    const other = object.name === 'Math' ? OTHER_METHODS[property.name] : undefined
    return other === undefined ? [] : [[property.start, property.end, other]]
  },
  Literal({ value, start, end }) {
    if (typeof value === 'boolean') return [[start, end, `${!value}`]]
    return typeof value === 'number' ? otherNumbers(value).map((other) => [start, end, `${other}`]) : []
  },
  IfStatement({ test: { start, end } }) {
    return [true, false].map((value) => [start, end, `${value}`])
  },
  ConditionalExpression({ consequent, alternate, start, end }, text) {
    return [consequent, alternate].map((branch) => [start, end, `(${text.slice(branch.start, branch.end)})`])
  },
}

/** The operator stands between the two sides, with nothing beside it but space and parentheses. */
function otherOperators({ operator, left, right }, text) {
  const start = left.end + text.slice(left.end, right.start).indexOf(operator)
  return (OTHER_OPERATORS[operator] ?? []).map((other) => [start, start + operator.length, other])
}

function inParentheses({ type, start, end }, text) {
  return type === 'LogicalExpression' || type === 'ConditionalExpression' ? `(${text.slice(start, end)})` : text.slice(start, end)
}
