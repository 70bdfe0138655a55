// The plain take by one limit: `decide` for one cell, whose state is written under the rule of the caller.
import { algorithmNode, Escape, fieldsOf, literal, Specialiser, variable } from './specialise.mjs'
import { BOOLEAN, NUMBER, STRING, UNKNOWN } from './types.mjs'

/** Fields of a rule that a take has no use for. */
const NOT_NEEDED = new Set(['algorithm', 'figures', 'numbers'])

const WORDS = { kind: 'array', of: NUMBER }

/** So many words of a state may be variables. */
const FEW_WORDS = 4

/**
 * A function of the figures of a rule, as a syntax tree. It returns the take by that rule, how many words a state has, and whether the take is given
 * the words one by one; and `neededWords`, if states grow.
 */
export function takeFunction(program, decide, algorithm) {
  const figures = variable('figures', WORDS)
  const made = specialiserFor(program, [figures])
  const { value } = algorithm.node.init.properties.find((each) => each.key?.name === 'ruleOf')
  const { lines, result } = made.body(algorithm.source, value, [figures])
  const object = result.arguments?.[0] ?? result
  const rule = { ...object, properties: object.properties.filter(({ key }) => !NOT_NEEDED.has(key.name)) }
  const body = inVariables(program, decide, algorithm, made, rule) ?? inTables(program, decide, algorithm, rule)
  return functionOf('newTake', [figures], [...lines, ...body])
}

/** The take with a variable for each field of the rule and for each word. Undefined if functions are called with either as a whole. */
function inVariables(program, decide, algorithm, made, { properties }) {
  const declared = []
  const fields = properties.map(({ key: { name }, value }) => {
    if (value.type === 'Literal' || value.isFixed) return [name, value]
    const local = variable(made.fresh(name), made.typeOf(value))
    declared.push(declaration([{ id: local, init: value }]))
    return [name, local]
  })
  const rule = fieldsOf({ algorithm: algorithmNode(algorithm), ...Object.fromEntries(fields) })
  const { words } = rule.fields
  if (words.type !== 'Literal' || words.value > FEW_WORDS) return undefined
  try {
    return [...declared, takeBy(program, decide, rule, true), returned(words, literal(true))]
  } catch (error) {
    if (error instanceof Escape) return undefined
    throw error
  }
}

function inTables(program, decide, algorithm, object) {
  const literals = object.properties.filter(({ value }) => value.type === 'Literal').map(({ key, value }) => [key.name, value])
  const known = new Map([['algorithm', algorithmNode(algorithm)], ...literals])
  const rule = { ...variable('rule', algorithm.type.names.R), known }
  const words = { type: 'MemberExpression', object: rule, property: { name: 'words' }, start: 0 }
  const needed = neededBy(program, algorithm)
  const functions = [takeBy(program, decide, rule, false), ...needed]
  return [
    declaration([{ id: rule, init: object }]),
    ...functions,
    returned(words, literal(false), ...needed.map(({ id }) => variable(id.name, UNKNOWN))),
  ]
}

function returned(...values) {
  return { type: 'ReturnStatement', several: [variable('take', UNKNOWN), ...values], start: 0 }
}

/** `neededWords(s)`, of an algorithm whose states grow. */
function neededBy(program, algorithm) {
  const member = algorithm.node.init.properties.find((each) => each.key?.name === 'neededWords')
  if (member === undefined) return []
  const s = variable('s', WORDS)
  const { lines, result } = specialiserFor(program, [s]).body(algorithm.source, member.value, [s, literal(1)])
  return [functionOf('neededWords', [s], [...lines, { type: 'ReturnStatement', several: [result], start: 0 }])]
}

/** `take(s, isHeld, cost, nowUs)`, or with four words in place of `s`, which are answered behind all else. */
function takeBy(program, decide, rule, isInVariables) {
  const words = isInVariables ? ['s1', 's2', 's3', 's4'].map((name) => variable(name, NUMBER, false)) : []
  const s = isInVariables ? { type: 'Static', elements: [undefined, ...words] } : variable('s', WORDS)
  const [isHeld, cost, nowUs] = [variable('isHeld', BOOLEAN), variable('cost', NUMBER), variable('nowUs', NUMBER)]
  const parameters = [...(isInVariables ? words : [s]), isHeld, cost, nowUs]
  const changed = variable('changed', BOOLEAN, false)
  const numbers = ['remaining', 'retryUs', 'resetUs', 'delayUs', 'enteredUs'].map((name) => variable(name, NUMBER, false))
  const told = [variable('outcome', STRING, false), ...numbers]
  const verdict = fieldsOf({ ...Object.fromEntries(told.map((each) => [each.name, each])), atUs: undefined, ticket: undefined })
  const cell = fieldsOf({ rule, own: rule, cost, s, i: literal(1), isHeld, changed, verdict })
  const cells = { type: 'Static', elements: [cell] }
  const given = { op: literal('take'), cells, nowUs, aheadUs: literal(-1), ofUs: literal(-1), isTold: literal(true) }
  const { node } = program.binding(decide, 'decide', { start: 0 })
  const answers = [changed, ...told]
  const outer = Object.values(rule.fields ?? { rule }).filter(({ name }) => name !== undefined)
  const values = node.params.map(({ name }) => given[name])
  const { lines } = specialiserFor(program, [...parameters, ...answers, ...outer]).body(decide, node, values)
  const declared = declaration(answers.map((id) => ({ id, init: null })))
  return functionOf('take', parameters, [declared, ...lines, { type: 'ReturnStatement', several: [...answers, ...words], start: 0 }])
}

function specialiserFor(program, variables) {
  const specialiser = new Specialiser(program)
  for (const { name } of variables) specialiser.reserve(name)
  return specialiser
}

function declaration(declarations) {
  return { type: 'VariableDeclaration', kind: 'let', declarations, start: 0, end: 0 }
}

function functionOf(name, params, body) {
  return { type: 'FunctionDeclaration', id: { name }, params, body: { type: 'BlockStatement', body, start: 0 }, start: 0, end: 0 }
}
